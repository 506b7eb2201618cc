"""safetensors: tensors by name, read a slice at a time."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ....core.errors import InputError
from ....core.files import parse_json
from .table import CLASS_NAMES, Array, Column, Table, by_split, check_different, slices

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


def read_safetensors(path: Path) -> list[Table]:
    """Open a file of tensors.

    Raises:
        InputError: It is damaged.
    """
    try:
        with safe_open(path, "pt") as file:
            found = [(key, file.get_slice(key)) for key in file.keys()]  # noqa: SIM118
            names = _class_names(file.metadata() or {}, path)
            shapes = [(key, tuple(part.get_shape()), str(part.get_dtype())) for key, part in found]
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:  # torch says so of a map that has no room
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: truncated, damaged or no safetensors file ({error}); get it again") from None
    columns = [Column(key, shape, _DTYPES.get(kind, kind), _Blocks(path, key)) for key, shape, kind in shapes if shape]
    return [replace(table, class_names=names) for table in by_split(columns, str(path), path.name)]


def _class_names(notes: dict[str, str], path: Path) -> list[str] | None:
    """The names of the classes, where the file's notes have them as a JSON list: tensors hold no text."""
    key = next((key for key in CLASS_NAMES if key in notes), None)
    if key is None:
        return None
    try:
        names = parse_json(notes[key])
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}: metadata: {key} is no JSON list of names; write it as json.dumps(names)")
    check_different(names, f"{path}: {key}")
    return names


class _Blocks:
    """The rows of one tensor, from the file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

    def __call__(self) -> Iterator[Array]:
        with safe_open(self.path, "pt") as file:
            yield from slices(file.get_slice(self.key))

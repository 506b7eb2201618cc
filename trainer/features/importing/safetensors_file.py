"""safetensors: tensors by name, read a slice at a time."""

from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ....core.errors import InputError
from .table import Array, Column, Table, by_split, slices

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
            shapes = [(key, tuple(part.get_shape()), str(part.get_dtype())) for key, part in found]
    except SafetensorError as error:
        raise InputError(f"{path}: truncated, damaged or no safetensors file ({error}); get it again") from None
    columns = [Column(key, shape, _DTYPES.get(kind, kind), _Blocks(path, key)) for key, shape, kind in shapes if shape]
    return by_split(columns, str(path), path.name)


class _Blocks:
    """The rows of one tensor, from the file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

    def __call__(self) -> Iterator[Array]:
        with safe_open(self.path, "pt") as file:
            yield from slices(file.get_slice(self.key))

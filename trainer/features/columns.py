"""The columns of a feature set, mapped from its Arrow files."""

import mmap
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from ...core.errors import DamagedFileError, InputError
from ...core.files import parse_json, read_json, regular_file
from ...core.typed_json import structured
from .arrow_stream import BAD_ARROW, unpacked_size

_LONGEST_NAME = 255
_AGAIN = "make it again with --overwrite"
_LINUX_NORESERVE = 0x4000 if sys.platform == "linux" else 0  # the constant came to Python with 3.13


class _DataFile(TypedDict):
    filename: str


class _State(TypedDict):
    """What is read of ``state.json``; `datasets` writes more."""

    _data_files: list[_DataFile]


@dataclass(frozen=True)
class Columns:
    """One split.

    Attributes:
        names: N sample ids as Arrow text; `ids` are the same as a list, made when first asked for.
        labels: ``(N,)``, int64.
        features: ``(N, D)``, float16 or float32; a private map of the file where one record batch holds them all.
        pictures: N hashes of the decoded pictures, in hexadecimal; ``None`` where they are not known.
        class_names: What the file calls the labels; ``None`` where it does not say.
    """

    names: pa.StringArray
    labels: np.ndarray[Any, np.dtype[np.int64]]
    features: np.ndarray[Any, Any]
    pictures: pa.StringArray | None = None
    class_names: list[str] | None = None

    @cached_property
    def ids(self) -> list[str]:
        """N sample ids."""
        found: list[str] = self.names.to_pylist()
        return found


def read_columns(folder: Path) -> Columns:
    """Map the Arrow files of one split, as ``datasets`` saved them.

    Raises:
        InputError: A file is missing or damaged, or a column is missing or of another type.
    """
    paths = _files(folder)
    batches = [found for path in paths for found in _batches(path)]
    if not batches:
        raise InputError(f"{folder}: has no rows; make it again with --overwrite")
    names = pa.concat_arrays([batch["id"] for batch, _ in batches])
    labels = np.concatenate([batch["label"].to_numpy() for batch, _ in batches])
    blocks = [_features(batch["features"], mapped) for batch, mapped in batches]
    known = all("picture" in batch.schema.names for batch, _ in batches)
    pictures = pa.concat_arrays([batch["picture"] for batch, _ in batches]) if known else None
    features = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    return Columns(names, labels, features, pictures, _class_names(batches[0][0].schema))


def _files(folder: Path) -> list[Path]:
    """The split's files, in the order that ``datasets`` wrote down."""
    state = folder / "state.json"
    try:
        names = structured(read_json(state), _State, str(state), advice=_AGAIN)["_data_files"]
    except DamagedFileError:
        raise
    except InputError as error:
        raise InputError(f"{error}; {_AGAIN}") from None
    for entry in names:
        name = entry["filename"]
        if Path(name).name != name or len(name) > _LONGEST_NAME:
            raise InputError(f"{state}: names {name[:40]!r}, expected a file of that folder; {_AGAIN}")
    return [regular_file(folder / entry["filename"]) for entry in names]


def _batches(path: Path) -> list[tuple[pa.RecordBatch, mmap.mmap]]:
    try:
        with path.open("rb") as file:
            mapped = _map_privately(file.fileno())
        stream = pa.BufferReader(pa.py_buffer(mapped))
        if any(unpacked_size(message) for message in pa.ipc.MessageReader.open_stream(stream)):
            raise ValueError("its columns are compressed")
        if stream.tell() != stream.size():
            raise ValueError(f"{stream.size() - stream.tell():,} bytes follow its end")
        with pa.ipc.open_stream(pa.py_buffer(mapped)) as reader:
            _check_types(reader.schema, path)
            found = [(batch, mapped) for batch in reader]
        for batch, _ in found:
            batch.validate(full=True)
            if any(batch[name].null_count for name in ("id", "label", "features")):
                raise ValueError("values are missing")
    except BAD_ARROW as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: damaged ({reason}); {_AGAIN}") from error
    return [(batch, mapped) for batch, mapped in found if batch.num_rows]


def _map_privately(descriptor: int) -> mmap.mmap:
    """Map a whole file: writing changes memory only. No memory is set aside for that, so it may be larger than RAM."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", _LINUX_NORESERVE)
    return mmap.mmap(descriptor, 0, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _check_types(schema: pa.Schema, path: Path) -> None:
    found = {field.name: field.type for field in schema}
    kind = found.get("features")
    wide = pa.types.is_fixed_size_list(kind) and kind.value_type in (pa.float16(), pa.float32()) if kind else False
    texts = [found.get("id"), found.get("picture", pa.string())]
    if not wide or texts != [pa.string()] * 2 or found.get("label") != pa.int64():
        types = {name: str(kind) for name, kind in found.items()}
        raise InputError(
            f"{path}: columns are {types}, expected id string, label int64, features fixed-size float list"
        )


def _class_names(schema: pa.Schema) -> list[str] | None:
    """The names that `datasets` keeps beside the columns."""
    try:
        told = parse_json((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return None
    for key in ("info", "features", "label"):
        told = told.get(key) if isinstance(told, dict) else None
    names = told.get("names") if isinstance(told, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else None


def _features(column: pa.FixedSizeListArray, mapped: mmap.mmap) -> np.ndarray[Any, Any]:
    """The values of a column as an array over the map itself: no copy, and writable without touching the file."""
    width = column.type.list_size
    dtype = np.dtype(str(column.type.value_type.to_pandas_dtype().__name__))
    start = column.values.buffers()[1].address - pa.py_buffer(mapped).address
    first = (column.offset * width + column.values.offset) * dtype.itemsize
    values = np.frombuffer(mapped, dtype, count=len(column) * width, offset=start + first)
    return values.reshape(len(column), width)

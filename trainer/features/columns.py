"""The columns of a feature set, mapped from its Arrow files."""

import json
import mmap
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.errors import InputError

_LINUX_NORESERVE = 0x4000 if sys.platform == "linux" else 0  # the constant came to Python with 3.13


@dataclass(frozen=True)
class Columns:
    """One split.

    Attributes:
        names: N sample ids as Arrow text; `ids` are the same as a list, made when first asked for.
        labels: ``(N,)``, int64.
        features: ``(N, D)``, float16 or float32; a private map of the file where one record batch holds them all.
        pictures: N hashes of the decoded pictures, in hexadecimal; ``None`` where they are not known.
    """

    names: pa.StringArray
    labels: np.ndarray[Any, np.dtype[np.int64]]
    features: np.ndarray[Any, Any]
    pictures: pa.StringArray | None = None

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
    return Columns(names, labels, blocks[0] if len(blocks) == 1 else np.concatenate(blocks), pictures)


def _files(folder: Path) -> list[Path]:
    """The split's files, in the order that ``datasets`` wrote down."""
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return [folder / entry["filename"] for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder / 'state.json'}: missing or damaged ({error}); make it again with --overwrite"
        ) from error


def _batches(path: Path) -> list[tuple[pa.RecordBatch, mmap.mmap]]:
    try:
        with path.open("rb") as file:
            mapped = _map_privately(file.fileno())
        with pa.ipc.open_stream(pa.py_buffer(mapped)) as reader:
            _check_types(reader.schema, path)
            return [(batch, mapped) for batch in reader if batch.num_rows]
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: missing or damaged ({error}); make it again with --overwrite") from error


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


def _features(column: pa.FixedSizeListArray, mapped: mmap.mmap) -> np.ndarray[Any, Any]:
    """The values of a column as an array over the map itself: no copy, and writable without touching the file."""
    width = column.type.list_size
    dtype = np.dtype(str(column.type.value_type.to_pandas_dtype().__name__))
    start = column.values.buffers()[1].address - pa.py_buffer(mapped).address
    first = (column.offset * width + column.values.offset) * dtype.itemsize
    values = np.frombuffer(mapped, dtype, count=len(column) * width, offset=start + first)
    return values.reshape(len(column), width)

"""Writing the columns of a split: laid out first, the features appended as they come, never all in memory."""

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import datasets
import numpy as np
import pyarrow as pa
import xxhash

from .split_checksums import mark_of, rows_sha256

Array = np.ndarray[Any, Any]
# Columns that rows of images have: which view of its image a row is, and the hash of its picture.
FURTHER = {"view": "int64", "picture": "string"}


class FeatureWriter(Protocol):
    """Where the features of a split go, in the order of its rows."""

    def append(self, rows: Array) -> None:
        """Take the next rows, ``(n, D)``."""


class MemoryFeatureWriter:
    """Keeps the features.

    Attributes:
        features: ``(N, D)``.
    """

    def __init__(self, rows: int, width: int, dtype: str) -> None:
        self.features = np.empty((rows, width), dtype)
        self._done = 0

    def append(self, rows: Array) -> None:
        """Take the next rows, ``(n, D)``."""
        self.features[self._done : self._done + len(rows)] = rows
        self._done += len(rows)


class FileFeatureWriter:
    """Writes the features into the place that an Arrow file keeps for them.

    Attributes:
        digest: Of the features so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.digest = file, xxhash.xxh3_128()

    def append(self, rows: Array) -> None:
        """Take the next rows, ``(n, D)``."""
        content = np.ascontiguousarray(rows).data
        self._file.write(content)
        self.digest.update(content)


@contextmanager
def split_file(
    folder: Path,
    names: pa.StringArray,
    labels: Array,
    class_names: list[str],
    width: int,
    dtype: str,
    further: Mapping[str, pa.Array] | None = None,
) -> Iterator[FileFeatureWriter]:
    """Make the folder of a split, as `datasets` saves it, with one record batch that maps as one array.

    Args:
        folder: The folder to make, called like its split.
        names: N ids.
        labels: ``(N,)`` int64.
        class_names: The classes.
        width: D.
        dtype: ``float16`` or ``float32``.
        further: N values of each of `FURTHER` that the rows have.

    Yields:
        What takes the N rows of features.
    """
    further = further or {}
    features = _columns(class_names, width, dtype, list(further))
    folder.mkdir(parents=True)
    rows = folder / "rows.arrow"
    columns = {"id": names, "label": pa.array(labels, pa.int64()), **further}
    with rows.open("wb+") as file:
        file.seek(_lay_out(file, features.arrow_schema, columns, width * np.dtype(dtype).itemsize))
        sink = FileFeatureWriter(file)
        yield sink
        file.flush()
        os.fsync(file.fileno())
    mark = mark_of(sink.digest.hexdigest(), rows_sha256(names, labels), class_names)
    rows.replace(_side_files(folder, features, mark))


def _columns(class_names: list[str], width: int, dtype: str, further: list[str]) -> datasets.Features:
    """The columns of a feature set, for `datasets`."""
    columns = {
        "id": datasets.Value("string"),
        "label": datasets.ClassLabel(names=class_names),
        "features": datasets.List(datasets.Value(dtype), length=width),
    }
    return datasets.Features(columns | {name: datasets.Value(FURTHER[name]) for name in further})


def _side_files(folder: Path, features: datasets.Features, mark: str) -> Path:
    """Let `datasets` write what it needs beside the rows, for one row; returns the file for all of them."""
    kind = features["features"]
    row: dict[str, int | str | Array] = {name: "" if name in ("id", "picture") else 0 for name in features}
    row["features"] = np.zeros(kind.length, kind.feature.dtype)
    table = pa.Table.from_pylist([row], schema=features.arrow_schema)
    were_on = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.Dataset(table, split=datasets.NamedSplit(folder.name), fingerprint=mark).save_to_disk(str(folder))
    finally:
        if were_on:
            datasets.enable_progress_bars()
    (file,) = folder.glob("data-*.arrow")
    return file


def _lay_out(file: BinaryIO, schema: pa.Schema, columns: dict[str, pa.Array], row: int) -> int:
    """Write all columns but the features, which stay a hole in the file; returns where they begin."""
    rows = len(columns["id"])
    size = rows * row
    file.truncate(max(size, mmap.PAGESIZE))
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as hole:
        buffer = pa.py_buffer(hole)
        kind = schema.field("features").type
        values = pa.Array.from_buffers(kind.value_type, rows * kind.list_size, [None, buffer.slice(0, size)])
        column = pa.FixedSizeListArray.from_arrays(values, type=kind)
        batch = pa.record_batch([(columns | {"features": column})[field.name] for field in schema], schema=schema)
        around = _Around(file, buffer.address, size)
        options = pa.ipc.IpcWriteOptions(allow_64bit=True)
        with pa.ipc.new_stream(pa.PythonFile(around, "w"), schema, options=options) as writer:
            writer.write_batch(batch)
        file.truncate()
        del buffer, values, column, batch, writer
    return around.place


class _Around:
    """A file that leaves a hole where one buffer would be written."""

    closed = False

    def __init__(self, file: BinaryIO, address: int, size: int) -> None:
        self.file, self.address, self.size, self.place = file, address, size, -1

    def write(self, data: Any) -> int:
        if isinstance(data, pa.Buffer) and (data.address, data.size) == (self.address, self.size):
            self.place = self.file.seek(0, os.SEEK_CUR)
            self.file.seek(self.size, os.SEEK_CUR)
            return self.size
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()

    def tell(self) -> int:
        return self.file.tell()

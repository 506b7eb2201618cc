"""Parquet and Arrow files with a list column, or a column for every feature."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ....core.errors import InputError
from .numbered_columns import with_matrices
from .table import Array, Batches, Column, Table, block_rows, split_in


def read_arrow(path: Path) -> list[Table]:
    """Open a ``.parquet``, ``.arrow`` or ``.feather`` file; a split is told by a word of its name.

    Raises:
        InputError: It is damaged.
    """
    return [Table(str(path), path.name, split_in(path.stem), arrow_columns(path))]


def arrow_columns(path: Path) -> list[Column]:
    """All columns of a file.

    Raises:
        InputError: It is damaged.
    """
    try:
        if path.suffix in (".parquet", ".pq"):
            return _parquet_columns(path)
        table = _map_table(path)
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: truncated, damaged or not {path.suffix} ({reason}); get it again") from None
    return table_columns(table.schema, len(table), lambda names: iter(table.select(names).to_batches()), str(path))


def _parquet_columns(path: Path) -> list[Column]:
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=8192, columns=names)

    return table_columns(schema, rows, batches, str(path))


def _map_table(path: Path) -> pa.Table:
    mapped = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(mapped).read_all()
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped).read_all()


def table_columns(
    schema: pa.Schema, rows: int, batches: Batches, where: str, class_names: dict[str, list[str]] | None = None
) -> list[Column]:
    """The columns of anything that gives Arrow record batches.

    Args:
        schema: Its schema.
        rows: N.
        batches: From column names to the rows in order.
        where: The file, for errors.
        class_names: Of columns that hold indices into names.
    """
    found = []
    for field in schema:
        listed = _is_list(field.type)
        width = _width(field, batches) if listed and rows else 0
        reader = _Lists(field.name, width, batches, where) if listed else _Values(field.name, batches)
        kind = _dtype(field.type.value_type if listed else field.type)
        shape = (rows, width) if listed else (rows,)
        found.append(Column(field.name, shape, kind, reader, (class_names or {}).get(field.name)))
    return found if any(len(column.shape) > 1 for column in found) else with_matrices(found, batches)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _width(field: pa.Field, batches: Batches) -> int:
    if pa.types.is_fixed_size_list(field.type):
        return int(field.type.list_size)
    first = next(batch for batch in batches([field.name]) if batch.num_rows)
    return int(len(first.column(0)[0]) if first.column(0)[0].is_valid else 0)


def _dtype(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    names = {"halffloat": "float16", "float": "float32", "double": "float64"}
    return names.get(str(kind), str(kind))


class _Values:
    """One value a row."""

    def __init__(self, name: str, batches: Batches) -> None:
        self.name, self.batches = name, batches

    def __call__(self) -> Iterator[Array]:
        for batch in self.batches([self.name]):
            yield batch.column(0).to_numpy(zero_copy_only=False)


class _Lists:
    """A list a row, all of one length."""

    def __init__(self, name: str, width: int, batches: Batches, where: str) -> None:
        self.name, self.width, self.batches, self.where = name, width, batches, where

    def __call__(self) -> Iterator[Array]:
        done = 0
        for batch in self.batches([self.name]):
            step = block_rows(self.width, 8)
            for start in range(0, batch.num_rows, step):
                yield self._matrix(batch.column(0).slice(start, step), done + start)
            done += batch.num_rows

    def _matrix(self, lists: Any, first: int) -> Array:
        lengths = lists.value_lengths().fill_null(-1).to_numpy()
        wrong = np.flatnonzero(lengths != self.width)
        if wrong.size:
            found = "nothing" if lengths[wrong[0]] < 0 else f"{lengths[wrong[0]]} values"
            raise InputError(
                f"{self.where}: {self.name} has {found} in row {first + wrong[0]}, expected {self.width} as in row 0; "
                "remove or repair that row"
            )
        values = lists.flatten()
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), self.width)

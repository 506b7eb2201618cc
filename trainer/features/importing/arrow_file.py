"""Parquet and Arrow files with a list column, or a column for every feature; and what `datasets` notes in them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.counted import counted
from ....core.errors import InputError
from ....core.files import parse_json
from ....core.json_values import JsonObject
from ....core.printable import shown
from ....core.typed_json import structured
from ..arrow_stream import ArrowStream, damaged
from ..parquet_rows import ParquetRows
from ..size_limits import WIDEST, check_text
from .numbered_columns import with_matrices
from .table import Array, Batches, Column, Table, block_rows, split_in

_ROWS = 8192
_AGAIN = "write the file again with `datasets`, or without the metadata (pyarrow: table.replace_schema_metadata())"


def read_arrow(path: Path) -> list[Table]:
    """Open a ``.parquet``, ``.arrow`` or ``.feather`` file; a split is told by a word of its name.

    Raises:
        InputError: It is damaged.
    """
    return [Table(str(path), path.name, split_in(path.stem), arrow_columns(path))]


def arrow_columns(path: Path) -> list[Column]:
    """All columns of a file, with the names of a `ClassLabel` of `datasets`.

    Raises:
        InputError: It is damaged, or unpacks to far more than it takes on disk.
    """
    rows = ParquetRows(path) if path.suffix.lower() in (".parquet", ".pq") else ArrowStream(path)
    return table_columns(rows.schema, rows.rows, rows.batches, str(path), _noted_names(rows.schema, str(path)))


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

    Raises:
        InputError: Names of columns are not UTF-8, or alike, or rows are wider than any features.
    """
    found = []
    try:
        counts = Counter(schema.names)
    except UnicodeDecodeError as error:
        raise damaged(Path(where), error) from None
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"{where}: has the column {repeated!r} twice; give every column a name of its own")
    for field in schema:
        listed = _is_list(field.type)
        width = _width(field, batches) if listed and rows else 0
        if width > WIDEST:
            raise InputError(
                f"{where}: {field.name} has {width:,} values in row 0, expected at most {WIDEST:,} features a row"
            )
        reader = (_Lists if listed else _Values)(field.name, width, batches, where)
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


class _Column:
    """The rows of a column, read anew each time."""

    def __init__(self, name: str, width: int, batches: Batches, where: str) -> None:
        self.name, self.width, self.batches, self.where = name, width, batches, where


class _Values(_Column):
    """One value a row."""

    def __call__(self) -> Iterator[Array]:
        for batch in self.batches([self.name]):
            column = batch.column(0)
            text = column.dictionary if pa.types.is_dictionary(column.type) else column
            if pa.types.is_string(text.type) or pa.types.is_large_string(text.type):
                check_text(f"{self.where}: {self.name}", pc.max(pc.binary_length(text)).as_py() or 0)
            for start in range(0, len(column), _ROWS):
                yield column.slice(start, _ROWS).to_numpy(zero_copy_only=False)


class _Lists(_Column):
    """A list a row, all of one length."""

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
            found = "nothing" if lengths[wrong[0]] < 0 else counted(int(lengths[wrong[0]]), "value")
            raise InputError(
                f"{self.where}: {self.name} has {found} in row {first + wrong[0]}, expected {self.width} as in row 0; "
                "remove or repair that row"
            )
        values = lists.flatten()
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), self.width)


class _Info(TypedDict):
    features: NotRequired[JsonObject | None]


class _Noted(TypedDict):
    info: NotRequired[_Info | None]


class _ClassLabel(TypedDict):
    names: NotRequired[list[str] | None]


def _noted_names(schema: pa.Schema, where: str) -> dict[str, list[str]]:
    """The class names of every column that `datasets` notes as a `ClassLabel`: JSON under the key ``huggingface``.

    A list of names that is empty says nothing.

    Args:
        schema: Of the file.
        where: The file, for errors.

    Raises:
        InputError: The metadata is no JSON or has something else in the place of names, or a name stands twice.
    """
    noted = (schema.metadata or {}).get(b"huggingface")
    if noted is None:
        return {}
    where = f"{where}: metadata huggingface"
    try:
        values = parse_json(noted)
    except ValueError as error:
        raise InputError(f"{where}: is no JSON ({error}); {_AGAIN}") from None
    info = structured(values, _Noted, where, advice=_AGAIN).get("info") or {}
    kinds = info.get("features") or {}
    there = (name for name in kinds if schema.get_field_index(name) >= 0)
    found = {name: _names(kinds[name], f"{where}: {shown(name)}") for name in there}
    return {name: names for name, names in found.items() if names}


def _names(kind: Any, where: str) -> list[str]:
    if not isinstance(kind, dict) or kind.get("_type") != "ClassLabel":
        return []
    names = structured(kind, _ClassLabel, where, advice=_AGAIN).get("names") or []
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: names: {shown(twice)} found twice, expected each class name once; {_AGAIN}")
    return names

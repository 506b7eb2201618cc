"""Tables of text with a column for every feature: ``f0;f1;...;label``."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from ....core.csv_file import Csv, csv_of
from ....core.errors import InputError
from ....core.files import regular_file
from ..arrow_stream import BAD_ARROW, damaged
from .arrow_file import table_columns
from .numbered_columns import NUMBERED
from .table import Table, split_in

# What is looked at to find separator, heading and the kinds of columns; what Arrow takes at a time.
_HEAD_BYTES, _BLOCK_BYTES = 4 << 20, 16 << 20
_NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?(0|[1-9]\d*)")


def read_csv_table(path: Path) -> list[Table]:
    """Open a ``.csv`` or ``.tsv`` file: commas, semicolons or tabs, the first row names the columns.

    With semicolons or tabs numbers may have decimal commas. Text stays as it is written, ``007`` among it.

    Raises:
        InputError: It is damaged, has no heading or rows of other lengths; the message names the line.
    """
    rows = _CsvRows(regular_file(path))
    return [
        Table(str(path), path.name, split_in(path.stem), table_columns(rows.schema, rows.rows, rows.batches, str(path)))
    ]


class _CsvRows:
    """The rows of a file, typed by its first ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        try:
            text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD_BYTES else "ignore")
        except UnicodeDecodeError as error:
            line = head.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{path}: line {line}: byte 0x{head[error.start]:02x} is not UTF-8; save it as UTF-8"
            ) from None
        first = csv_of(text.replace("\r\n", "\n").replace("\r", "\n"), str(path), part=len(head) == _HEAD_BYTES)
        self.names = _names(first, path)
        cells = [[row.cells[place].strip() for row in first.rows[1:]] for place in range(len(self.names))]
        comma = first.separator != "," and _has(cells, ",") and not _has(cells, ".")
        self._parse = pc.ParseOptions(delimiter=first.separator, newlines_in_values=True)
        self._read = pc.ReadOptions(
            block_size=_BLOCK_BYTES, use_threads=False, column_names=self.names, skip_rows_after_names=1
        )
        self._convert = pc.ConvertOptions(
            column_types=_types(self.names, cells), decimal_point="," if comma else ".", strings_can_be_null=False
        )
        self.schema = pa.schema(self._convert.column_types)
        self.rows = sum(batch.num_rows for batch in self.batches(self.names[:1]))

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self._convert.include_columns = names
        try:
            yield from pc.open_csv(self.path, self._read, self._parse, self._convert)
        except BAD_ARROW as error:
            raise damaged(self.path, error) from None


def _names(table: Csv, path: Path) -> list[str]:
    """The columns' names; a column without one, as pandas writes the index, gets its number."""
    first = [cell.strip() for cell in table.rows[0].cells]
    fractions = [cell for cell in first if _NUMBER.fullmatch(cell) and not _WHOLE.fullmatch(cell)]
    if fractions or len(table.rows) < 2:
        found = f"{fractions[0]} in it" if fractions else "no row below it"
        raise InputError(f"{path}: line {table.rows[0].line}: {found}, expected a heading such as f0, f1, label")
    names = [name or f"(column {place})" for place, name in enumerate(first, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: has the column {twice!r} twice; give every column a name of its own")
    return names


def _has(cells: list[list[str]], sign: str) -> bool:
    return any(sign in cell for column in cells for cell in column if _NUMBER.fullmatch(cell))


def _types(names: list[str], cells: list[list[str]]) -> dict[str, pa.DataType]:
    """Whole numbers, numbers, or text; of numbered columns all are numbers where one is."""
    types, real = {}, set()
    for name, column in zip(names, cells, strict=True):
        given = [cell for cell in column if cell]
        whole = all(_WHOLE.fullmatch(cell) for cell in given)
        number = whole or all(_NUMBER.fullmatch(cell) and not re.match(r"[-+]?0\d", cell) for cell in given)
        types[name] = pa.int64() if whole else pa.float64() if number else pa.string()
        if number and not whole and (match := NUMBERED.fullmatch(name)):
            real.add(match[1])
    for name in names:
        if types[name] == pa.int64() and (match := NUMBERED.fullmatch(name)) and match[1] in real:
            types[name] = pa.float64()
    return types

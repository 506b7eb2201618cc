"""Tables of text with a column for every feature: ``f0;f1;...;label``."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from ....core.csv_file import Csv, CsvRow, csv_of
from ....core.errors import InputError
from ....core.files import regular_file
from ....core.listed import listed
from ....core.printable import short, shown
from ..arrow_stream import BAD_ARROW, damaged
from .arrow_file import table_columns
from .numbered_columns import NUMBERED
from .table import Table, split_in

# What is looked at to find separator, heading and the kinds of columns; what Arrow takes at a time.
_HEAD_BYTES, _BLOCK_BYTES = 4 << 20, 16 << 20
_NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[-+]?(0|[1-9]\d*)", re.ASCII)
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-f]+", re.IGNORECASE | re.ASCII)
_PADDED = re.compile(r"[-+]?0\d", re.ASCII)
# Of those, what Arrow takes: no sign + before whole numbers, one decimal sign, no other blanks around it.
_BLANKS = " \t"
_DECIMALS = {",", "."}
_DIGITS = len(str(2**63))


def read_csv_table(path: Path) -> list[Table]:
    """Open a ``.csv`` or ``.tsv`` file: commas, semicolons or tabs, the first row names the columns.

    With semicolons or tabs numbers may have decimal commas. Text stays as it is written, ``007`` among it.

    Raises:
        InputError: It is damaged, has no heading or rows of other lengths; the message names the line.
    """
    rows = _CsvRows(regular_file(path))
    columns = [
        replace(column, place=partial(rows.place, column.parts or [column.name]))
        for column in table_columns(rows.schema, rows.rows, rows.batches, str(path))
    ]
    return [Table(str(path), path.name, split_in(path.stem), columns)]


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
        self._lines = [row.line for row in first.rows[1:]]
        self._separator = first.separator
        comma = first.separator != "," and _count(cells, ",") > _count(cells, ".")
        self._decimal = "," if comma else "."
        types = self._types(cells)
        self._parse = pc.ParseOptions(delimiter=first.separator, newlines_in_values=True)
        self._read = pc.ReadOptions(
            block_size=_BLOCK_BYTES, use_threads=False, column_names=self.names, skip_rows_after_names=1
        )
        self._convert = pc.ConvertOptions(column_types=types, decimal_point=self._decimal, strings_can_be_null=False)
        self.schema = pa.schema(types)
        self._check_hexadecimal()
        self.rows = sum(batch.num_rows for batch in self.batches(self.names[:1]))

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self._convert.include_columns = names
        try:
            yield from pc.open_csv(self.path, self._read, self._parse, self._convert)
        except BAD_ARROW as error:
            raise self._misfit() or damaged(self.path, error) from None

    def _check_hexadecimal(self) -> None:
        """Refuse ``0x10`` in a column of whole numbers, which Arrow takes for 16."""
        whole = [name for name, kind in zip(self.schema.names, self.schema.types, strict=True) if kind == pa.int64()]
        if not whole or not _has(self.path, b"0x", b"0X"):
            return
        for row in self._cells():
            for name in whole if len(row.cells) == len(self.names) else ():
                if _HEXADECIMAL.fullmatch(cell := self._cell(row, name)):
                    raise self._wrong(row.line, name, cell, "a whole number")

    def place(self, names: Sequence[str], row: int, column: int = 0) -> str:
        """Where a value stands, and its cell as it is written.

        Args:
            names: The columns of the file that make up a matrix, or the single one.
            row: From 0, without the heading.
            column: Of the matrix.
        """
        found = next(islice(self._cells(), row, None))
        return f"{self.path}: line {found.line}: {short(names[column])}: {shown(self._cell(found, names[column]))}"

    def _cells(self) -> Iterator[CsvRow]:
        """The rows under the heading once more, now as text."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=self._separator)
            yield from islice((CsvRow(reader.line_num, cells) for cells in reader if cells), 1, None)

    def _cell(self, row: CsvRow, name: str) -> str:
        return row.cells[self.names.index(name)].strip()

    def _misfit(self) -> InputError | None:
        """The first cell that is not of its column's type, which the first rows decide."""
        typed = list(zip(self.schema.names, self.schema.types, strict=True))
        for row in self._cells():
            if len(row.cells) != len(typed):
                found = f"{len(row.cells)} columns, expected {len(typed)} as in the heading"
                return InputError(f"{self.path}: line {row.line}: {found}")
            for cell, (name, kind) in zip((cell.strip(_BLANKS) for cell in row.cells), typed, strict=True):
                if expected := self._unfit(cell, kind):
                    return self._wrong(row.line, name, cell, expected)
        return None

    def _unfit(self, cell: str, kind: pa.DataType) -> str:
        """What was expected in place of a cell, or nothing where it is of its column's type."""
        if not cell or kind == pa.string():
            return ""
        if kind == pa.float64():
            if not _NUMBER.fullmatch(cell):
                return "a number"
            return "" if self._decimal in cell or not _DECIMALS & set(cell) else f"a number with {self._decimal!r}"
        if not _WHOLE.fullmatch(cell):
            return "a whole number"
        if cell.startswith("+"):
            return "a whole number without a sign +"
        fits = len(cell) < _DIGITS or -(2**63) <= int(cell[: 2 * _DIGITS]) < 2**63
        return "" if fits else "a whole number of 64 bits"

    def _wrong(self, line: int, name: str, cell: str, expected: str) -> InputError:
        where = f"{self.path}: line {line}: {short(name)}"
        return InputError(f"{where}: {shown(cell)} found, expected {expected} as in the other rows; correct this cell")

    def _types(self, cells: list[list[str]]) -> dict[str, pa.DataType]:
        """Whole numbers, numbers, or text; of numbered columns all are numbers where one is."""
        types, runs = {}, dict[str, list[str]]()
        for name, column in zip(self.names, cells, strict=True):
            given = [cell for cell in column if cell]
            whole = all(map(_WHOLE.fullmatch, given))
            number = whole or (all(map(_NUMBER.fullmatch, given)) and not any(map(_PADDED.match, given)))
            types[name] = pa.int64() if whole else pa.float64() if number else pa.string()
            if match := NUMBERED.fullmatch(name):
                runs.setdefault(match[1], []).append(name)
                if not number:
                    self._check_features(name, column)
        for run in runs.values():
            if pa.float64() in map(types.get, run):
                types |= {name: pa.float64() for name in run if types[name] == pa.int64()}
        return types

    def _check_features(self, name: str, column: list[str]) -> None:
        """Raise an `InputError` for the cell without which a column ``f7`` would hold numbers."""
        wrong = [place for place, cell in enumerate(column) if cell and not _NUMBER.fullmatch(cell)]
        if wrong and 2 * len(wrong) < len([cell for cell in column if cell]):
            raise self._wrong(self._lines[wrong[0]], name, column[wrong[0]], "a number")


def _has(path: Path, *parts: bytes) -> bool:
    """Whether a file holds one of some parts of two bytes."""
    end = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            if any(part in end + block[:1] or part in block for part in parts):
                return True
            end = block[-1:]
    return False


def _names(table: Csv, path: Path) -> list[str]:
    """The columns' names; a column without one, as pandas writes the index, gets its number."""
    first = [cell.strip() for cell in table.rows[0].cells]
    fractions = [cell for cell in first if _NUMBER.fullmatch(cell) and not _WHOLE.fullmatch(cell)]
    where = f"{path}: line {table.rows[0].line}"
    if fractions:
        raise InputError(f"{where}: {fractions[0]} in it, expected a header such as f0, f1, label")
    if len(table.rows) < 2:
        raise InputError(f"{where}: no row below it, expected a header such as f0, f1, label and then rows")
    names = [name or f"(column {place})" for place, name in enumerate(first, 1)]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    numbers = [int(name[: 2 * _DIGITS]) for name in names if _WHOLE.fullmatch(name)]
    all_numbers = len(numbers) == len(names) and numbers != sorted(numbers)
    if all_numbers or (twice is not None and _WHOLE.fullmatch(twice)):
        raise InputError(f"{where}: numbers in it ({listed(names, 4)}), expected a header such as f0, f1, label")
    if twice is not None:
        raise InputError(f"{path}: has the column {shown(twice)} twice; give every column a name of its own")
    return names


def _count(cells: list[list[str]], sign: str) -> int:
    """How many numbers have a sign."""
    return sum(sign in cell and _NUMBER.fullmatch(cell) is not None for column in cells for cell in column)

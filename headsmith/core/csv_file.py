"""Tables of text that a user wrote: CSV with commas, or with semicolons or tabs as Excel writes it."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import InputError
from .text_file import read_text

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class CsvRow(NamedTuple):
    """A row of a table.

    Attributes:
        line: The line of the file in which it ends, from 1.
        cells: Its columns.
    """

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Csv:
    """A table of text with two columns or more.

    Attributes:
        separator: What parts its columns, one of `SEPARATORS`.
        rows: All rows but blank ones, a heading among them, all of one length.
    """

    separator: str
    rows: list[CsvRow]


def read_csv(path: str | Path) -> Csv:
    """Read a table.

    Raises:
        InputError: See `read_text` and `csv_of`.
    """
    return csv_of(read_text(path), str(path))


def csv_of(text: str, where: str, *, part: bool = False) -> Csv:
    """Read a table's text; what parts the columns is the one sign by which all rows have one length, above one.

    Args:
        text: The text.
        where: The file, for errors.
        part: Whether it is only the begin of one, so that its last row may be cut.

    Raises:
        InputError: Several signs or none can be what parts the columns; the message names the first line of another
            length, or with an open quotation mark.
    """
    found = {separator: _read(text, separator, part) for separator in SEPARATORS}
    even = [separator for separator, (rows, fault) in found.items() if fault is None]
    if len(even) > 1:
        names = " or ".join(SEPARATORS[separator] for separator in even)
        raise InputError(f"{where}: {names} could separate its columns; quote text that holds one")
    if not even:
        _, fault = max(found.values(), key=lambda read: len(read[0][0].cells) if read[0] else 0)
        raise InputError(f"{where}: {fault}")
    return Csv(even[0], found[even[0]][0])


def _read(text: str, separator: str, part: bool) -> tuple[list[CsvRow], str | None]:
    """The rows as far as they can be read, and what keeps them from being a table."""
    reader, rows = csv.reader(io.StringIO(text), delimiter=separator, strict=True), list[CsvRow]()
    try:
        rows.extend(CsvRow(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))
    except csv.Error as error:
        if not part:
            return rows, f"line {reader.line_num}: cannot be read as a row ({error})"
    else:
        rows = rows[:-1] if part else rows
    if not rows:
        return rows, "no rows found, expected some with two columns or more"
    width = len(rows[0].cells)
    other = next((row for row in rows if len(row.cells) != width), None)
    if other is not None:
        return rows, f"line {other.line}: {len(other.cells)} columns, expected {width} as in line {rows[0].line}"
    return rows, f"line {rows[0].line}: one column, expected two or more" if width == 1 else None

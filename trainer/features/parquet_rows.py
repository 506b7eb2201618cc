"""Parquet files of strangers: a few pages can stand for any number of values, which are counted before any is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...core.files import regular_file
from .arrow_stream import BAD_ARROW, damaged
from .bounds import BLOCK_BYTES, check_unpacked

_MOST_ROWS = 8192
_SIZES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}


class ParquetRows:
    """The rows of a parquet file.

    Attributes:
        schema: Its columns; those of text as Arrow dictionaries, so that what repeats is held once.
        rows: N.

    Raises:
        InputError: The file is damaged, or unpacks to far more than it takes on disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = regular_file(path)
        try:
            with pq.ParquetFile(path) as file:
                schema, found = file.schema_arrow, file.metadata
            self._text = [field.name for field in schema if field.type in (pa.string(), pa.large_string())]
            self.schema, self.rows = schema, found.num_rows
            self._row_bytes = {name: _row_bytes(found, name) for name in schema.names}
            check_unpacked(str(path), _unpacked(found), path.stat().st_size)
        except BAD_ARROW as error:
            raise damaged(path, error) from None

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows in order, of some columns, at most about `BLOCK_BYTES` at a time.

        Raises:
            InputError: The file is damaged.
        """
        rows = BLOCK_BYTES // max(1, sum(self._row_bytes[name] for name in names))
        try:
            options: dict[str, Any] = {"read_dictionary": self._text, "page_checksum_verification": True}
            with pq.ParquetFile(self.path, pre_buffer=False, **options) as file:
                done = 0
                for batch in file.iter_batches(max(1, min(rows, _MOST_ROWS)), columns=names, use_threads=False):
                    batch.validate(full=True)
                    done += batch.num_rows
                    yield batch
                if done != self.rows:
                    raise ValueError(f"{done:,} rows of {', '.join(names)}, its heading says {self.rows:,}")
        except BAD_ARROW as error:
            raise damaged(self.path, error) from None


def _columns(found: pq.FileMetaData, name: str | None = None) -> Iterator[tuple[int, Any]]:
    """Rows and column of every row group, of one column of the table or of all."""
    places = [
        place
        for place in range(found.num_columns)
        if name is None or f"{found.schema.column(place).path}.".startswith(f"{name}.")
    ]
    for group in map(found.row_group, range(found.num_row_groups)):
        yield from ((group.num_rows, group.column(place)) for place in places)


def _row_bytes(found: pq.FileMetaData, name: str) -> int:
    """Bytes of a row of a column, on average, in the row group where they are most."""
    return max((max(_bytes(one), 0) // max(1, rows) for rows, one in _columns(found, name)), default=0)


def _unpacked(found: pq.FileMetaData) -> int:
    return sum(max(_bytes(one), one.total_uncompressed_size) for _, one in _columns(found))


def _bytes(column: Any) -> int:
    return int(column.num_values * _SIZES.get(column.physical_type, 8))

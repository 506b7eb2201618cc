"""Parquet files of strangers: a few pages can stand for any number of values, which are counted before any is read."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...core.files import regular_file
from .arrow_stream import BAD_ARROW, damaged
from .parquet_footer import Chunk, read_footer
from .size_limits import BLOCK_BYTES, MOST_TIMES, check_unpacked

_MOST_ROWS = 8192


class ParquetRows:
    """The rows of a parquet file.

    Attributes:
        schema: Its columns; those of text as Arrow dictionaries, so that what repeats is held once.
        rows: N.
        chunks: What the row groups hold of each column, by its path.

    Raises:
        InputError: The file is damaged, or unpacks to far more than it takes on disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = regular_file(path)
        try:
            with pq.ParquetFile(path) as file:
                schema, found = file.schema_arrow, file.metadata
                columns = [found.schema.column(place).path for place in range(found.num_columns)]
            groups = read_footer(path)
            if [len(group) for group in groups] != [len(columns)] * found.num_row_groups:
                raise ValueError(f"row groups without all of {len(columns):,} columns")
            self._text = [field.name for field in schema if field.type in (pa.string(), pa.large_string())]
            self.schema, self.rows = schema, found.num_rows
            self.chunks = {path: [group[place] for group in groups] for place, path in enumerate(columns)}
            self._row_bytes = _row_bytes(schema.names, self.chunks)
            unpacked = sum(max(chunk.bytes, chunk.unpacked) for chunk in chain.from_iterable(groups))
            check_unpacked(str(path), unpacked, path.stat().st_size)
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
                    raise ValueError(f"{done:,} rows of {', '.join(names)}, its header says {self.rows:,}")
        except BAD_ARROW as error:
            raise damaged(self.path, error) from None


def _row_bytes(names: list[str], chunks: dict[str, list[Chunk]]) -> dict[str, int]:
    """Bytes of a row of each field, on average, in the column and row group where they are most.

    Args:
        names: Of the fields.
        chunks: The parts of every column by its path, which begins with the name of its field.
    """
    most = {path: max((one.bytes // max(1, one.rows) for one in parts), default=0) for path, parts in chunks.items()}
    nested = {name: [size for path, size in most.items() if path.startswith(f"{name}.")] for name in names}
    return {name: max([most.get(name, 0), *nested[name]]) for name in names}


def checked_parquet(path: Path) -> pa.Schema:
    """The columns of a file with images that takes about as much memory or disk as an Arrow file as it does now.

    A value that stands in a file once may be repeated a million times.

    Raises:
        InputError: The file is damaged, or unpacks to far more than it takes on disk.
    """
    file = ParquetRows(path)
    repeated = [
        name
        for name, chunks in file.chunks.items()  # fewer rows repeat nothing more often than that
        if any(chunk.in_dictionary and chunk.rows > MOST_TIMES for chunk in chunks)
    ]
    try:
        for name in sorted(repeated):
            check_unpacked(str(path), _bytes(path, name), path.stat().st_size)
    except BAD_ARROW as error:
        raise damaged(path, error) from None
    return file.schema


def _bytes(path: Path, name: str) -> int:
    """Bytes of all values of a column, which are read as a dictionary."""
    total = 0
    with pq.ParquetFile(path, read_dictionary=[name]) as file:
        for batch in file.iter_batches(8192, columns=[name], use_threads=False):
            column = batch.column(0)
            while pa.types.is_struct(column.type) and column.type.num_fields:
                column = column.field(0)
            if pa.types.is_dictionary(column.type):
                length = pc.binary_length(column.dictionary)
                total += pc.sum(length.cast(pa.int64()).take(column.indices)).as_py() or 0
    return total

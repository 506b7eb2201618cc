"""Parquet files with images: a value that stands in a file once may be repeated a million times."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .arrow_stream import BAD_ARROW, damaged
from .parquet_rows import ParquetRows
from .size_limits import MOST_TIMES, check_unpacked


def checked_parquet(path: Path) -> pa.Schema:
    """The columns of a file that takes about as much memory or disk as an Arrow file as it does now.

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

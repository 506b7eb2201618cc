"""`datasets`: a folder that `save_to_disk` wrote, or a name on the hub."""

from collections.abc import Iterator, Mapping
from typing import Any

import datasets
import pyarrow as pa

from ..images.datasets_source import load
from ..images.samples import split_called
from .arrow_file import table_columns
from .table import Table


def read_dataset(source: str) -> list[Table]:
    """Open a data set; its splits are kept, the names of a `ClassLabel` too.

    Raises:
        InputError: There is no such data set.
    """
    name, found = load(source)
    tables = dict(found) if isinstance(found, Mapping) else {"": found}
    known = {own: table for own, table in tables.items() if split_called(own)}
    if len(tables) == 1 and not known:
        known = tables
    return [_table(name, own, table) for own, table in known.items()]


def _table(name: str, own: str, table: Any) -> Table:
    names = {key: list(kind.names) for key, kind in table.features.items() if isinstance(kind, datasets.ClassLabel)}
    arrow = table.with_format("arrow")

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        for block in arrow.select_columns(columns).iter(batch_size=8192):
            yield from block.to_batches()

    where = f"{name}: {own}" if own else name
    columns = table_columns(table.features.arrow_schema, len(table), batches, where, names)
    return Table(where, own or "train", split_called(own), columns)

"""The split of every row: what a column called ``split`` says of each, else what the file says of all."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from ....core.errors import InputError
from ..images.samples import SPLITS, split_called
from .origin import Origin
from .table import Array, Column, Table

_NAMES = ("split", "splits")


def split_column(table: Table, rows: int, other_than: Collection[str | None]) -> Column | None:
    """The column called ``split`` with one value a row, or ``None``; those that were asked for are something else."""
    named = [column for column in table.columns if column.name.lower() in _NAMES and column.name not in other_than]
    found = [column for column in named if column.shape == (rows,)]
    return found[0].needed(table.name) if len(found) == 1 else None


def says_splits(table: Table, column: Column, origin: Origin) -> bool:
    """Whether the rows go by a column. They do where all its values name splits, unless a person said the split.

    Raises:
        InputError: Some values name no split and nothing else says it, or the file itself says another split.
    """
    if table.said:
        return False
    codes = split_codes(column)
    remedy = f"correct it, give that column another name, or say the split of the file: {origin.split('train')}"
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        if table.split is not None:
            return False
        found = column.where(int(unknown[0]), table.name)
        raise InputError(f"{found}, expected train, val or test; {remedy}")
    other = np.flatnonzero(codes != (codes if table.split is None else SPLITS.index(table.split)))
    if other.size:
        found = column.where(int(other[0]), table.name)
        raise InputError(f"{found}, but the name of the file or folder says {table.split}; {remedy}")
    return True


def split_codes(column: Column) -> Array:
    """``(N,)`` int8, index into `SPLITS` for every row; -1 for values that name no split."""
    values = pa.array(column.read(), from_pandas=True).dictionary_encode()
    known = [split_called(name) if isinstance(name, str) else None for name in values.dictionary.to_pylist()]
    codes = np.array([-1 if split is None else SPLITS.index(split) for split in known] + [-1], np.int8)
    rows: Array = codes[values.indices.fill_null(len(known)).to_numpy()]
    return rows

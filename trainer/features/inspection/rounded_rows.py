"""Rows that are another row, rounded: to 16 bits, or to a few decimals as a table of text has them.

Found are pairs of which one is on a grid in every column, and the other becomes equal to it where it is rounded to that
grid. Networks give no such rows by chance: of values with 24 bits, one in 65,000 is a bfloat16.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from ..bit_equal_rows import row_hashes

Array = np.ndarray[Any, Any]
Grid = Callable[[Array], Array]
# So many entries have to be other than 0 and to be rounded: fewer may agree by chance.
ENTRIES = 8
_DECIMALS, _LOOK, _BLOCK = (2, 3, 4), 16, 4_096


def rounded_pairs(rows: Callable[[Array], Array], count: int, width: int, precision: float) -> Array:
    """``(P, 2)`` places of a row and of the row that it is rounded to.

    A few columns decide which rows are looked at as a whole.

    Args:
        rows: From places ``(n,)`` to their rows ``(n, D)``, float64.
        count: N.
        width: D.
        precision: Half a unit of the last place of a stored value, in parts of it.
    """
    columns = np.unique(np.linspace(0, width - 1, _LOOK).astype(int))
    some = np.concatenate([rows(places)[:, columns] for places in _blocks(np.arange(count))])
    found = [np.empty((0, 2), np.int64)]
    decimals: list[Grid] = [partial(_decimals, digits) for digits in _DECIMALS]
    for grid in (_float16, _bfloat16, *decimals):
        few = grid(some)
        candidates = np.flatnonzero(~_moved(some, few, precision).any(axis=1))
        on_grid, codes = _looked_at(rows, candidates, grid, precision, whole=True)
        if not 0 < len(on_grid) < count:
            continue
        keys = row_hashes(few)
        alike = np.setdiff1d(np.flatnonzero(np.isin(keys, keys[on_grid])), on_grid)
        others, own = _looked_at(rows, alike, grid, precision, whole=False)
        place = dict(zip(codes.tolist(), on_grid.tolist(), strict=True))
        pairs = [(row, place[code]) for row, code in zip(others.tolist(), own.tolist(), strict=True) if code in place]
        found.append(np.array(pairs, np.int64).reshape(-1, 2))
    return np.concatenate(found)


def _looked_at(
    rows: Callable[[Array], Array], places: Array, grid: Grid, precision: float, *, whole: bool
) -> tuple[Array, Array]:
    """Of some rows those that are on a grid as a ``whole``, else those that are not, and hashes of all, rounded."""
    kept, codes = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for part in _blocks(places):
        values = rows(part)
        rounded = grid(values)
        moved = _moved(values, rounded, precision).sum(axis=1)
        mark = (moved == 0) & (np.count_nonzero(values, axis=1) >= ENTRIES) if whole else moved >= ENTRIES
        kept.append(part[mark])
        codes.append(row_hashes(rounded[mark]))
    return np.concatenate(kept), np.concatenate(codes)


def _blocks(places: Array) -> Iterator[Array]:
    yield from (places[start : start + _BLOCK] for start in range(0, len(places), _BLOCK))


def _moved(rows: Array, rounded: Array, precision: float) -> Array:
    mark: Array = ~(np.abs(rounded - rows) <= precision * np.abs(rows))  # beyond the grid is infinite
    return mark


def _float16(rows: Array) -> Array:
    return _half(rows, torch.float16)


def _bfloat16(rows: Array) -> Array:
    return _half(rows, torch.bfloat16)


def _half(rows: Array, kind: torch.dtype) -> Array:
    found: Array = torch.from_numpy(rows).float().to(kind).double().numpy() + 0  # no zero has a sign
    return found


def _decimals(digits: int, rows: Array) -> Array:
    found: Array = np.rint(rows * 10.0**digits) / 10.0**digits + 0
    return found

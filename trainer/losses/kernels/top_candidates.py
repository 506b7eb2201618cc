"""The label and the m - 1 highest other scores of each of ROWS rows, with one pass over their memory.

A row is cut into groups of GROUP neighbouring columns. One pass leaves the highest score of each group in registers;
then each of m rounds takes the highest of these, and refreshes its group, a handful of neighbouring values that are
still in cache, with the next one below it. The round that meets the label is void.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln
from .score_order import LOWEST, NO_COLUMN, is_nan, ordered, packed, score_of


@triton.jit
def group_maxima(
    row_ptrs,
    zeros_ptrs,
    inside,
    C,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    ROWS: tl.constexpr,
    LOG_SUM: tl.constexpr,
    SUM: tl.constexpr,
    ZEROS: tl.constexpr,
):
    """One pass over the rows at `row_ptrs` (ROWS,), those `inside` the batch; where ZEROS, zeros go to `zeros_ptrs`.

    `C` counts in units of VECTOR columns, so that the compiler may load VECTOR columns at once.

    Returns:
        Highest of each group, (ROWS, TILES * TILE_GROUPS) packed keys or, where WIDE, ordered integers and their
        columns in the same shape; (ROWS,) whether there is a NaN; (ROWS,) log-sum-exp where LOG_SUM; and (ROWS,) the
        sum of the scores where SUM.
    """
    columns = (tl.arange(0, TILE_GROUPS)[:, None] * GROUP + tl.arange(0, GROUP)[None, :])[None, :, :]
    tile_ids = tl.arange(0, TILES)[None, :, None]
    heads = tl.full((ROWS, TILES, TILE_GROUPS), LOWEST, tl.int32)
    head_columns = tl.full((ROWS, TILES, TILE_GROUPS), NO_COLUMN, tl.int32)
    highest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS,), tl.float32)
    low = tl.full((ROWS,), 0, tl.int32)
    high = tl.full((ROWS,), 0, tl.int32)
    for tile in range(TILES):
        at = columns + tile * (TILE_GROUPS * GROUP)
        there = (at < C * VECTOR) & inside[:, None, None]
        raw = tl.load(row_ptrs[:, None, None] + at, mask=there, other=float("-inf"))
        if ZEROS:
            tl.store(zeros_ptrs[:, None, None] + at, tl.zeros_like(raw), mask=there)
        if WIDE:
            keys = ordered(raw, True)
            tops = tl.max(keys, axis=2)
            first = tl.min(tl.where(keys == tops[:, :, None], at, NO_COLUMN), axis=2)
            head_columns = tl.where(tile_ids == tile, first[:, None, :], head_columns)
        else:
            keys = packed(raw, at)
            tops = tl.max(keys, axis=2)
        heads = tl.where(tile_ids == tile, tops[:, None, :], heads)
        low = tl.minimum(low, tl.min(tl.min(keys, axis=2), axis=1))
        high = tl.maximum(high, tl.max(tops, axis=1))
        if LOG_SUM:
            scores = raw.to(tl.float32)
            new = tl.maximum(highest, tl.max(tl.max(scores, axis=2), axis=1))
            shifted = tl.exp(scores - new[:, None, None])
            total = total * tl.exp(highest - new) + tl.sum(tl.sum(shifted, axis=2), axis=1)
            highest = new
        if SUM:
            sums += tl.sum(tl.sum(tl.where(there, raw.to(tl.float32), 0.0), axis=2), axis=1)
    if LOG_SUM:
        highest += ln(total)
    heads = tl.reshape(heads, (ROWS, TILES * TILE_GROUPS))
    head_columns = tl.reshape(head_columns, (ROWS, TILES * TILE_GROUPS))
    return heads, head_columns, is_nan(low, high, row_ptrs.dtype.element_ty, WIDE), highest, sums


@triton.jit
def take_highest(
    row_ptrs,
    inside,
    heads,
    head_columns,
    label,
    label_score,
    m,
    C,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    M: tl.constexpr,
):
    """The candidates, the label first, then in descending order: scores (ROWS, M) float32, columns (ROWS, M) int32."""
    lane = tl.arange(0, M)[None, :]
    group_ids = tl.arange(0, heads.shape[1])[None, :]
    members = tl.arange(0, GROUP)[None, :]
    keys = tl.where(lane == 0, label_score[:, None], 0.0).to(tl.int32, bitcast=True)
    columns = tl.where(lane == 0, label[:, None], 0)
    slot = tl.full(label.shape, 1, tl.int32)
    for _ in range(m):
        key = tl.max(heads, axis=1)
        if WIDE:
            column = tl.min(tl.where(heads == key[:, None], head_columns, NO_COLUMN), axis=1)
        else:
            column = 0xFFFF - (key & 0xFFFF)
        taken = (lane == slot[:, None]) & (column != label)[:, None]
        keys = tl.where(taken, key[:, None], keys)
        columns = tl.where(taken, column[:, None], columns)
        slot += (column != label).to(tl.int32)
        group = column // GROUP
        at = (group * GROUP)[:, None] + members
        there = (at < C * VECTOR) & inside[:, None]
        raw = tl.load(row_ptrs[:, None] + at, mask=there, other=float("-inf"))
        if WIDE:
            values = ordered(raw, True)
            values = tl.where(
                (values < key[:, None]) | ((values == key[:, None]) & (at > column[:, None])), values, LOWEST
            )
            head = tl.max(values, axis=1)
            head_column = tl.min(tl.where(values == head[:, None], at, NO_COLUMN), axis=1)
            head_columns = tl.where(group_ids == group[:, None], head_column[:, None], head_columns)
        else:
            values = packed(raw, at)
            head = tl.max(tl.where(values < key[:, None], values, LOWEST), axis=1)
        heads = tl.where(group_ids == group[:, None], head[:, None], heads)
    scores = score_of(keys, row_ptrs.dtype.element_ty, WIDE)
    return tl.where(lane == 0, label_score[:, None], scores), columns

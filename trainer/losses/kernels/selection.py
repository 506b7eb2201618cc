"""The label and the m - 1 highest other scores of a row, with one pass over its memory.

The row is cut into groups of GROUP neighbouring columns. One pass leaves the highest score of each group in registers;
then each of m rounds takes the highest of these, and refreshes its group, a handful of neighbouring values that are
still in cache, with the next one below it. The round that meets the label is void.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .keys import LOWEST, NO_COLUMN, is_nan, ordered, packed, score_of
from .maths import ln


@triton.jit
def group_maxima(
    row_ptr,
    C,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    LOG_SUM: tl.constexpr,
):
    """One pass over a row.

    `C` counts in units of VECTOR columns, so that the compiler may load VECTOR columns at once.

    Returns:
        Highest of each group, (TILES, TILE_GROUPS) packed keys or, where WIDE, ordered integers and their columns in
        the same shape; whether there is a NaN; and the row's log-sum-exp where LOG_SUM.
    """
    columns = tl.arange(0, TILE_GROUPS)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    tile_ids = tl.arange(0, TILES)[:, None]
    heads = tl.full((TILES, TILE_GROUPS), LOWEST, tl.int32)
    head_columns = tl.full((TILES, TILE_GROUPS), NO_COLUMN, tl.int32)
    highest = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    low = tl.full((), 0, tl.int32)
    high = tl.full((), 0, tl.int32)
    for tile in range(TILES):
        at = columns + tile * (TILE_GROUPS * GROUP)
        raw = tl.load(row_ptr + at, mask=at < C * VECTOR, other=float("-inf"))
        if WIDE:
            keys = ordered(raw, True)
            tops = tl.max(keys, axis=1)
            first = tl.min(tl.where(keys == tops[:, None], at, NO_COLUMN), axis=1)
            head_columns = tl.where(tile_ids == tile, first[None, :], head_columns)
        else:
            keys = packed(raw, at)
            tops = tl.max(keys, axis=1)
        heads = tl.where(tile_ids == tile, tops[None, :], heads)
        low = tl.minimum(low, tl.min(keys))
        high = tl.maximum(high, tl.max(tops))
        if LOG_SUM:
            scores = raw.to(tl.float32)
            new = tl.maximum(highest, tl.max(scores))
            total = total * tl.exp(highest - new) + tl.sum(tl.exp(scores - new))
            highest = new
    if LOG_SUM:
        highest += ln(total)
    return heads, head_columns, is_nan(low, high, row_ptr.dtype.element_ty, WIDE), highest


@triton.jit
def take_highest(
    row_ptr,
    heads,
    head_columns,
    label,
    label_score,
    m,
    C,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    M: tl.constexpr,
):
    """The candidates: scores (M,) float32 and columns (M,) int32, the label first, then in descending order."""
    lane = tl.arange(0, M)
    group_ids = tl.arange(0, TILES)[:, None] * TILE_GROUPS + tl.arange(0, TILE_GROUPS)[None, :]
    members = tl.arange(0, GROUP)
    keys = tl.where(lane == 0, label_score, 0.0).to(tl.int32, bitcast=True)
    columns = tl.where(lane == 0, label, 0)
    slot = 1
    for _ in range(m):
        key = tl.max(heads)
        if WIDE:
            column = tl.min(tl.where(heads == key, head_columns, NO_COLUMN))
        else:
            column = 0xFFFF - (key & 0xFFFF)
        taken = (lane == slot) & (column != label)
        keys = tl.where(taken, key, keys)
        columns = tl.where(taken, column, columns)
        slot += (column != label).to(tl.int32)
        group = column // GROUP
        at = group * GROUP + members
        raw = tl.load(row_ptr + at, mask=at < C * VECTOR, other=float("-inf"))
        if WIDE:
            values = ordered(raw, True)
            values = tl.where((values < key) | ((values == key) & (at > column)), values, LOWEST)
            head = tl.max(values)
            head_column = tl.min(tl.where(values == head, at, NO_COLUMN))
            head_columns = tl.where(group_ids == group, head_column, head_columns)
        else:
            values = packed(raw, at)
            head = tl.max(tl.where(values < key, values, LOWEST))
        heads = tl.where(group_ids == group, head, heads)
    scores = score_of(keys, row_ptr.dtype.element_ty, WIDE)
    return tl.where(lane == 0, label_score, scores), columns

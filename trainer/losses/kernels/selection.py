"""The label and the m - 1 highest other scores of a row, with one pass over its memory.

The row is cut into groups of GROUP neighbouring columns. One pass leaves the highest key of each group in registers; then each of
m - 1 rounds takes the highest of these, and refreshes its group, a handful of neighbouring values that are still in cache, with the
highest key below the one that was taken.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .keys import column_of, lowest_key, pack, score_of


@triton.jit
def group_maxima(
    row_ptr,
    label,
    C,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    SELECT: tl.constexpr,
    LOG_SUM: tl.constexpr,
):
    """One pass over a row.

    `C` counts in units of VECTOR columns, so that the compiler may load VECTOR columns at once.

    Returns:
        (TILES, TILE_GROUPS) keys without the label's, whether there is a NaN, and the row's log-sum-exp where LOG_SUM.
    """
    columns = tl.arange(0, TILE_GROUPS)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    tile_ids = tl.arange(0, TILES)[:, None]
    heads = tl.zeros((TILES, TILE_GROUPS), tl.int64 if WIDE else tl.int32) + lowest_key(WIDE)
    highest = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    nans = tl.zeros((), tl.int32)
    for tile in range(TILES):
        at = columns + tile * (TILE_GROUPS * GROUP)
        inside = at < C * VECTOR
        raw = tl.load(row_ptr + at, mask=inside, other=float("-inf"))
        scores = raw.to(tl.float32)
        nans += tl.sum((scores != scores).to(tl.int32))
        if SELECT:
            keys = tl.where(inside & (at != label), pack(raw, at, WIDE), lowest_key(WIDE))
            heads = tl.where(tile_ids == tile, tl.max(keys, axis=1)[None, :], heads)
        if LOG_SUM:
            new = tl.maximum(highest, tl.max(scores))
            total = total * tl.exp(highest - new) + tl.sum(tl.exp(scores - new))
            highest = new
    if LOG_SUM:
        highest += tl.log(total)
    return heads, nans > 0, highest


@triton.jit
def take_highest(
    row_ptr,
    heads,
    label,
    label_score,
    m,
    C,
    DTYPE: tl.constexpr,
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
    scores = tl.where(lane == 0, label_score, 0.0)
    columns = tl.where(lane == 0, label.to(tl.int32), 0)
    for i in range(1, m):
        key = tl.max(heads)
        column = column_of(key, WIDE)
        scores = tl.where(lane == i, score_of(key, DTYPE, WIDE), scores)
        columns = tl.where(lane == i, column, columns)
        group = column // GROUP
        at = group * GROUP + members
        raw = tl.load(row_ptr + at, mask=at < C * VECTOR, other=float("-inf"))
        keys = pack(raw, at, WIDE)
        left = (at < C * VECTOR) & (at != label) & (keys < key)
        head = tl.max(tl.where(left, keys, lowest_key(WIDE)))
        heads = tl.where(group_ids == group, head, heads)
    return scores, columns

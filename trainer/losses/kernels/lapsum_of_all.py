"""LapSum over all classes: a program holds a row in registers, or reads it tile by tile where it is too wide for them.

No class is sorted: see `laplace.py` for the search of the thresholds.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .laplace import NOTHING_BELOW, distances, goes_over, log_laplace, log_shares, margins, shares
from .maths import LOG2_E, ln, log2
from .objective import objective


@triton.jit
def _load(row_ptr, tile, C, VECTOR: tl.constexpr, TILE: tl.constexpr):
    columns = tile * TILE + tl.arange(0, TILE)
    return tl.load(row_ptr + columns, mask=columns < C * VECTOR, other=float("-inf")).to(tl.float32)


@triton.jit
def _tile(row, tile, TILES: tl.constexpr):
    """Scores (TILE,) of the row: the only tile stays in registers."""
    row_ptr, only, C, VECTOR, _, _ = row
    if TILES == 1:
        return only
    else:
        return _load(row_ptr, tile, C, VECTOR, only.shape[0])


@triton.jit
def _highest(row, TILES: tl.constexpr):
    """The highest score, and how many are not masked."""
    top = tl.full(row[1].shape, float("-inf"), tl.float32)
    count = tl.zeros(row[1].shape, tl.int32)
    for tile in range(TILES):
        scores = _tile(row, tile, TILES)
        top = tl.maximum(top, scores)
        count += (scores != float("-inf")).to(tl.int32)
    return tl.max(top, axis=0), tl.sum(count, axis=0)


@triton.jit
def _sums(row, TILES: tl.constexpr):
    """The sums of exponentials, of the scores and of the scaled ones."""
    _, only, _, _, top, steep = row
    total = tl.zeros(only.shape, tl.float32)
    scaled = tl.zeros(only.shape, tl.float32)
    for tile in range(TILES):
        shifted = _tile(row, tile, TILES) - top
        total += tl.exp2(shifted * LOG2_E)
        scaled += tl.exp2(shifted * steep)
    return tl.sum(total, axis=0), tl.sum(scaled, axis=0)


@triton.jit
def _mean(row, TILES: tl.constexpr):
    """The mean of the scores."""
    _, only, C, VECTOR, _, _ = row
    total = tl.zeros(only.shape, tl.float32)
    for tile in range(TILES):
        columns = tile * only.shape[0] + tl.arange(0, only.shape[0])
        total += tl.where(columns < C * VECTOR, _tile(row, tile, TILES), 0.0)
    return tl.sum(total, axis=0) / (C * VECTOR)


@triton.jit
def _split(row, highest, over, TILES: tl.constexpr):
    """The split where scores have gone over: how many are above, the lowest of them, and the highest of the others.

    And log2 of both sides' sums of 2^-|x - that one|.
    """
    steep = row[5]
    found = tl.zeros(row[1].shape, tl.float32)
    low = tl.full(row[1].shape, float("inf"), tl.float32)
    high = tl.full(row[1].shape, NOTHING_BELOW, tl.float32)
    for tile in range(TILES):
        scores = _tile(row, tile, TILES)
        higher = goes_over(scores, steep, highest, over)
        found += higher.to(tl.float32)
        low = tl.minimum(low, tl.where(higher, scores, float("inf")))
        high = tl.maximum(high, tl.where(higher, float("-inf"), scores))
    lowest, next_highest = tl.min(low, axis=0), tl.max(high, axis=0)
    sum_a = tl.zeros(row[1].shape, tl.float32)
    sum_b = tl.zeros(row[1].shape, tl.float32)
    for tile in range(TILES):
        scores = _tile(row, tile, TILES)
        higher = goes_over(scores, steep, highest, over)
        near = tl.exp2(tl.where(higher, lowest - scores, scores - next_highest) * steep)
        sum_a += tl.where(higher, near, 0.0)
        sum_b += tl.where(higher, 0.0, near)
    log_a, log_b = log2(tl.sum(sum_a, axis=0)), log2(tl.sum(sum_b, axis=0))
    return tl.sum(found, axis=0), lowest, next_highest, log_a, log_b


@triton.jit(
    do_not_specialize=["row_stride", "C", "K", "p_k_class_stride", "p_k_row_stride", "ignore_index"],
)
def forward_of_all_kernel(
    logits_ptr,
    labels_ptr,
    p_k_ptr,
    weight_ptr,
    losses_ptr,
    saved_ptr,
    row_stride,
    C,
    K,
    p_k_class_stride,
    p_k_row_stride,
    ignore_index,
    beta,
    floor,
    smoothing,
    MODE: tl.constexpr,
    FLOORED: tl.constexpr,
    SMOOTHED: tl.constexpr,
    WEIGHTED: tl.constexpr,
    VECTOR: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    RANKS: tl.constexpr,
):
    """The loss of a row, and what its gradient is made of; see `run_lapsum_of_all.py` for the arguments."""
    index = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + index * row_stride * VECTOR
    target = tl.load(labels_ptr + index)
    kept = target != ignore_index
    valid = (target >= 0) & (target < C * VECTOR)
    label = tl.where(valid, target, 0).to(tl.int32)
    label_score = tl.load(row_ptr + label).to(tl.float32)
    shares_ptr = p_k_ptr + label * p_k_class_stride + index * p_k_row_stride
    k = tl.arange(0, RANKS)
    FIRST: tl.constexpr = 0 if MODE == "sort" else 1
    weights = tl.load(shares_ptr + k, mask=(k >= FIRST) & (k < K), other=0.0).to(tl.float32)
    top1 = tl.load(shares_ptr).to(tl.float32)

    steep = beta * LOG2_E
    only = _load(row_ptr, 0, C, VECTOR, TILE)
    top, count = _highest((row_ptr, only, C, VECTOR, 0.0, steep), TILES)
    top = tl.where(top == float("-inf"), 0.0, top)
    row = (row_ptr, only, C, VECTOR, top, steep)
    total, scaled_total = _sums(row, TILES)
    log_sum = top + ln(total)

    insides = tl.zeros((RANKS,), tl.float32)
    lows = tl.zeros((RANKS,), tl.float32)
    highs = tl.zeros((RANKS,), tl.float32)
    at_lows = tl.zeros((RANKS,), tl.float32)
    at_highs = tl.zeros((RANKS,), tl.float32)
    above = 0.0
    lowest, highest = float("inf"), top
    log_a, log_b = float("-inf"), log2(scaled_total)
    for step in range(FIRST, tl.minimum(K, count - 1)):
        if tl.load(shares_ptr + step).to(tl.float32) > 0:
            under, over = margins(above, step + 1.0, log_a, log_b, (lowest - highest) * steep)
            while over < 0:
                above, lowest, highest, log_a, log_b = _split(row, highest, over, TILES)
                under, over = margins(above, step + 1.0, log_a, log_b, (lowest - highest) * steep)
            at_lowest, at_highest = log_shares(log_a, log_b, under, over)
            insides = tl.where(k == step, distances(label_score, steep, lowest, highest, under, over), insides)
            lows = tl.where(k == step, lowest, lows)
            highs = tl.where(k == step, highest, highs)
            at_lows = tl.where(k == step, at_lowest, at_lows)
            at_highs = tl.where(k == step, at_highest, at_highs)

    asked = (k + 1 < count) & (weights > 0)
    log_p, slope = log_laplace(insides)
    log_p = tl.where(asked, log_p, 0.0)
    one = tl.zeros((1,), tl.float32)
    losses, by_k, by_softmax = objective(
        log_p[None, :], weights[None, :], one + top1, one + (label_score - log_sum), floor, MODE, FLOORED, True
    )
    pulls = tl.where(asked, -beta * tl.sum(by_k, axis=0) * slope, 0.0)
    by_label = tl.sum(by_softmax, axis=0)
    loss = tl.sum(losses, axis=0)
    invalid = (valid == 0) | (total != total)
    masked_label = label_score == float("-inf")
    weight = tl.where(kept, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(weight_ptr + label).to(tl.float32)
    loss = tl.where(invalid, float("nan"), tl.where(masked_label, float("inf"), loss))
    graded = masked_label == 0
    share = tl.where(graded, -by_label, 0.0)
    if SMOOTHED:
        rest = 1 - smoothing
        loss = rest * loss + smoothing * (log_sum - _mean(row, TILES))
        by_label *= rest
        pulls *= rest
        share = rest * share + smoothing
    tl.store(losses_ptr + index, tl.where(kept, loss * weight, 0.0))
    tl.store(saved_ptr + index, weight)
    saved = saved_ptr + tl.num_programs(0) + 1 + index * (4 + 4 * K)
    tl.store(saved, tl.where(invalid, float("nan"), share))
    tl.store(saved + 1, log_sum)
    tl.store(saved + 2, tl.where(graded, by_label - tl.sum(pulls, axis=0), 0.0))
    tl.store(saved + 3, label.to(tl.float32, bitcast=True))
    heights = tl.where((pulls > 0) & graded, log2(tl.where(pulls > 0, pulls, 1.0)), float("-inf"))
    tl.store(saved + 4 + k, lows, mask=k < K)
    tl.store(saved + 4 + K + k, highs, mask=k < K)
    tl.store(saved + 4 + 2 * K + k, heights + at_lows, mask=k < K)
    tl.store(saved + 4 + 3 * K + k, heights + at_highs, mask=k < K)


@triton.jit(do_not_specialize=["row_stride", "output_stride", "upstream_stride", "C", "K"])
def backward_of_all_kernel(
    output_ptr,
    logits_ptr,
    upstream_ptr,
    saved_ptr,
    row_stride,
    output_stride,
    upstream_stride,
    C,
    K,
    beta,
    uniform,
    MODE: tl.constexpr,
    SMOOTHED: tl.constexpr,
    SCALED: tl.constexpr,
    VECTOR: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
):
    """The gradient of a row: the softmax's share, one of each k that falls off around its threshold, the label's own.

    Where SMOOTHED, it is less by `uniform`.
    """
    index = tl.program_id(0).to(tl.int64)
    rows = tl.num_programs(0)
    saved = saved_ptr + rows + 1 + index * (4 + 4 * K)
    weight = tl.load(saved_ptr + index)
    scale = tl.load(upstream_ptr + index * upstream_stride).to(tl.float32) * weight
    if SCALED:
        scale *= tl.load(saved_ptr + rows)
    share = tl.load(saved)
    log_sum = tl.load(saved + 1)
    by_label = tl.load(saved + 2)
    label = tl.load(saved + 3).to(tl.int32, bitcast=True)
    steep = beta * LOG2_E
    for tile in range(TILES):
        columns = tile * TILE + tl.arange(0, TILE)
        scores = _load(logits_ptr + index * row_stride * VECTOR, tile, C, VECTOR, TILE)
        if MODE == "sort" and not SMOOTHED:
            pull = tl.zeros_like(scores) + share
        else:
            pull = share * tl.exp2((scores - log_sum) * LOG2_E)
        if SMOOTHED:
            pull -= uniform
        for k in range(K):
            at_lowest = tl.load(saved + 4 + 2 * K + k)
            at_highest = tl.load(saved + 4 + 3 * K + k)
            if tl.maximum(at_lowest, at_highest) > float("-inf"):
                lowest, highest = tl.load(saved + 4 + k), tl.load(saved + 4 + K + k)
                pull += shares(scores, steep, lowest, highest, at_lowest, at_highest)
        pull = tl.where(columns == label, pull + by_label, pull)
        pull = tl.where(weight != 0, pull * scale, 0.0)
        tl.store(
            output_ptr + index * output_stride * VECTOR + columns,
            pull.to(output_ptr.dtype.element_ty),
            mask=columns < C * VECTOR,
        )

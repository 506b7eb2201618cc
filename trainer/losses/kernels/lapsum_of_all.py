"""LapSum over all classes: a program holds a row in registers, or reads it tile by tile where it is too wide for them.

No class is sorted: see `laplace.py` for the search of the thresholds.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .laplace import log_laplace, threshold
from .maths import LOG2_E, ln, log2, log2_add
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
def _scaled(row, tile, TILES: tl.constexpr):
    """The same, the highest of the row 0, times beta, for exponentials to the base 2."""
    _, _, _, _, top, steep = row
    return (_tile(row, tile, TILES) - top) * steep


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
def _above(row, b, TILES: tl.constexpr):
    """How many scores lie above b."""
    found = tl.zeros(row[1].shape, tl.float32)
    for tile in range(TILES):
        found += (_scaled(row, tile, TILES) > b).to(tl.float32)
    return tl.sum(found, axis=0)


@triton.jit
def _split(row, b, TILES: tl.constexpr):
    """Log2 of the sum of 2^-x over the scores above b, of which there are some, and of that of 2^x over the others."""
    low = tl.full(row[1].shape, float("inf"), tl.float32)
    high = tl.full(row[1].shape, -1e30, tl.float32)
    for tile in range(TILES):
        x = _scaled(row, tile, TILES)
        low = tl.minimum(low, tl.where(x > b, x, float("inf")))
        high = tl.maximum(high, tl.where(x > b, float("-inf"), x))
    lowest, highest = tl.min(low, axis=0), tl.max(high, axis=0)
    over = tl.zeros(row[1].shape, tl.float32)
    under = tl.zeros(row[1].shape, tl.float32)
    for tile in range(TILES):
        x = _scaled(row, tile, TILES)
        near = tl.exp2(tl.where(x > b, lowest - x, x - highest))
        over += tl.where(x > b, near, 0.0)
        under += tl.where(x > b, 0.0, near)
    return log2(tl.sum(over, axis=0)) - lowest, log2(tl.sum(under, axis=0)) + highest


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

    thresholds = tl.zeros((RANKS,), tl.float32)
    log_totals = tl.zeros((RANKS,), tl.float32)
    above = 0.0
    log_a = float("-inf")
    log_b = log2(scaled_total)
    for step in range(FIRST, tl.minimum(K, count - 1)):
        if tl.load(shares_ptr + step).to(tl.float32) > 0:
            b = threshold(above, step + 1.0, log_a, log_b)
            found = 0.0
            if b < 0:
                found = _above(row, b, TILES)
            while found > above:
                above = found
                log_a, log_b = _split(row, b, TILES)
                b = threshold(above, step + 1.0, log_a, log_b)
                found = _above(row, b, TILES)
            thresholds = tl.where(k == step, b, thresholds)
            log_totals = tl.where(k == step, log2_add(log_a + b, log_b - b), log_totals)

    asked = (k + 1 < count) & (weights > 0)
    log_p, slope = log_laplace((label_score - top) * steep - thresholds)
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
    saved = saved_ptr + tl.num_programs(0) + 1 + index * (5 + 2 * K)
    tl.store(saved, tl.where(invalid, float("nan"), share))
    tl.store(saved + 1, log_sum)
    tl.store(saved + 2, top)
    tl.store(saved + 3, tl.where(graded, by_label - tl.sum(pulls, axis=0), 0.0))
    tl.store(saved + 4, label.to(tl.float32, bitcast=True))
    heights = tl.where((pulls > 0) & graded, log2(tl.where(pulls > 0, pulls, 1.0)) - log_totals, float("-inf"))
    tl.store(saved + 5 + k, thresholds, mask=k < K)
    tl.store(saved + 5 + K + k, heights, mask=k < K)


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
    """The gradient of a row: the softmax's share, one of each k, 2^(height - |x - b|), and the label's own.

    Where SMOOTHED, it is less by `uniform`.
    """
    index = tl.program_id(0).to(tl.int64)
    rows = tl.num_programs(0)
    saved = saved_ptr + rows + 1 + index * (5 + 2 * K)
    weight = tl.load(saved_ptr + index)
    scale = tl.load(upstream_ptr + index * upstream_stride).to(tl.float32) * weight
    if SCALED:
        scale *= tl.load(saved_ptr + rows)
    share = tl.load(saved)
    log_sum = tl.load(saved + 1)
    top = tl.load(saved + 2)
    by_label = tl.load(saved + 3)
    label = tl.load(saved + 4).to(tl.int32, bitcast=True)
    steep = beta * LOG2_E
    for tile in range(TILES):
        columns = tile * TILE + tl.arange(0, TILE)
        scores = _load(logits_ptr + index * row_stride * VECTOR, tile, C, VECTOR, TILE)
        x = (scores - top) * steep
        if MODE == "sort" and not SMOOTHED:
            pull = tl.zeros_like(x) + share
        else:
            pull = share * tl.exp2((scores - log_sum) * LOG2_E)
        if SMOOTHED:
            pull -= uniform
        for k in range(K):
            height = tl.load(saved + 5 + K + k)
            if height > float("-inf"):
                pull += tl.exp2(height - tl.abs(x - tl.load(saved + 5 + k)))
        pull = tl.where(columns == label, pull + by_label, pull)
        pull = tl.where(weight != 0, pull * scale, 0.0)
        tl.store(
            output_ptr + index * output_stride * VECTOR + columns,
            pull.to(output_ptr.dtype.element_ty),
            mask=columns < C * VECTOR,
        )

"""The fused forward: a program selects its rows' candidates, relaxes them, and leaves their gradient and the losses."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .maths import ln
from .objective import membership_weights, rank_weights
from .top_candidates import group_maxima, take_highest


@triton.jit
def _label_softmax(scores, shifted_label, finite, label_score, log_sum, OVER_CLASSES: tl.constexpr):
    """The label's log-softmax (ROWS,), and the softmax of the candidates (ROWS, M)."""
    if OVER_CLASSES:
        log_softmax = label_score - log_sum
        return log_softmax, tl.exp(scores + (log_softmax - shifted_label)[:, None])
    else:
        exponentials = tl.where(finite, tl.exp(scores), 0.0)
        total = tl.sum(exponentials, axis=1)
        return shifted_label - ln(total), exponentials / total[:, None]


@triton.jit(
    do_not_specialize=["rows", "row_stride", "C", "K", "layers", "p_k_class_stride", "p_k_row_stride", "ignore_index"]
)
def forward_kernel(
    logits_ptr,
    labels_ptr,
    p_k_ptr,
    weight_ptr,
    codes_ptr,
    scratch_ptr,
    losses_ptr,
    saved_ptr,
    zeros_ptr,
    rows,
    row_stride,
    C,
    m,
    K,
    layers,
    p_k_class_stride,
    p_k_row_stride,
    ignore_index,
    beta,
    setting,
    floor,
    smoothing,
    RELAX: tl.constexpr,
    MEMBERSHIPS: tl.constexpr,
    VARIANT: tl.constexpr,
    MODE: tl.constexpr,
    OVER_CLASSES: tl.constexpr,
    FLOORED: tl.constexpr,
    SMOOTHED: tl.constexpr,
    WEIGHTED: tl.constexpr,
    ZEROS: tl.constexpr,
    CHAINED: tl.constexpr,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
    WEIGHTS: tl.constexpr,
    RANKS: tl.constexpr,
    LAYERS: tl.constexpr,
):
    """See `run_kernels.py` and `plan.py` for the arguments; `row_stride` and `C` count in units of VECTOR columns.

    Of the numbers only `m` is worth a compilation of its own: for m = 1 nothing is selected but the label.
    """
    if CHAINED:
        gdc_wait()
        gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < rows
    row_ptrs = logits_ptr + row * row_stride * VECTOR
    target = tl.load(labels_ptr + row, mask=present, other=ignore_index)
    kept = target != ignore_index
    valid = (target >= 0) & (target < C * VECTOR)
    label = tl.where(valid, target, 0).to(tl.int32)
    lane = tl.arange(0, M)
    p_k_ptrs = p_k_ptr + label * p_k_class_stride + tl.where(present, row, 0) * p_k_row_stride
    zeros_ptrs = zeros_ptr + row * (C * VECTOR)

    heads, head_columns, nan, log_sum, score_sum = group_maxima(
        row_ptrs,
        zeros_ptrs,
        present,
        C,
        WIDE,
        VECTOR,
        GROUP,
        TILE_GROUPS,
        TILES,
        ROWS,
        OVER_CLASSES or SMOOTHED,
        SMOOTHED,
        ZEROS,
    )
    label_score = tl.load(row_ptrs + label, mask=present, other=0.0).to(tl.float32)
    top1 = tl.load(p_k_ptrs, mask=present, other=0.0).to(tl.float32)
    if WEIGHTS > 0:
        ranks = tl.arange(0, WEIGHTS)[None, :]
        if MEMBERSHIPS:
            weights = membership_weights(p_k_ptrs, ranks, K, 0 if MODE == "sort" else 1)
        else:
            weights = rank_weights(p_k_ptrs, ranks, K, 0 if MODE == "sort" else 1, RANKS)
    else:
        weights = top1
    scores, columns = take_highest(
        row_ptrs, present, heads, head_columns, label, label_score, m, C, WIDE, VECTOR, GROUP, M
    )
    inside = (lane < m)[None, :]
    finite = inside & (scores > float("-inf"))
    count = tl.sum(finite.to(tl.int32), axis=1)
    shift = tl.max(tl.where(inside, scores, float("-inf")), axis=1)
    scores = tl.where(finite, scores - shift[:, None], 0.0)
    shifted = label_score - shift
    log_softmax, softmax = _label_softmax(scores, shifted, finite, label_score, log_sum, OVER_CLASSES)
    one_hot = tl.where(lane == 0, 1.0, 0.0)

    loss, gradient, by_softmax = RELAX(
        (scores, shifted, count, lane),
        (weights, top1, log_softmax, floor, p_k_ptrs, K),
        (scratch_ptr, codes_ptr, layers, row, m),
        beta,
        setting,
        VARIANT,
        MODE,
        FLOORED,
        ROWS,
        M,
        RANKS,
        LAYERS,
    )
    gradient += by_softmax[:, None] * (one_hot[None, :] - softmax)
    invalid = nan | (valid == 0)
    masked_label = label_score == float("-inf")
    weight = tl.where(kept, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(weight_ptr + label).to(tl.float32)
    loss = tl.where(invalid, float("nan"), tl.where(masked_label, float("inf"), loss))
    gradient = tl.where(finite & (masked_label == 0)[:, None], gradient, 0.0)
    gradient = tl.where(invalid[:, None], float("nan"), gradient)
    share = tl.zeros_like(loss)
    if OVER_CLASSES:
        share = tl.where(masked_label, 0.0, -by_softmax)
    if SMOOTHED:
        rest = 1 - smoothing
        classes = (C * VECTOR).to(tl.float32)
        loss = rest * loss + smoothing * (log_sum - score_sum / classes)
        over_classes = tl.where(finite, tl.exp(scores + (shift - log_sum)[:, None]), 0.0)
        gradient = rest * gradient + smoothing * (over_classes - 1 / classes)
        share = rest * share + smoothing
    tl.store(losses_ptr + row, tl.where(kept, loss * weight, 0.0), mask=present)
    tl.store(saved_ptr + row, weight, mask=present)
    saved = saved_ptr + rows + 1 + row * (2 + 2 * m)
    if OVER_CLASSES or SMOOTHED:
        tl.store(saved, tl.where(kept, share, 0.0), mask=present)
        tl.store(saved + 1, log_sum, mask=present)
    at = saved[:, None] + 2 + lane[None, :]
    stored = inside & present[:, None]
    tl.store(at, tl.where(kept[:, None], gradient, 0.0), mask=stored)
    tl.store(at + m, columns.to(tl.float32, bitcast=True), mask=stored)

"""The fused forward: one program selects a row's candidates, relaxes them, and leaves their gradient and the loss."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln
from .networks import network_large, network_large_back, network_small, network_small_back
from .objective import objective
from .pairwise import neuralsort, neuralsort_gradient, softsort, softsort_gradient
from .selection import group_maxima, take_highest
from .sinkhorn import sinkhorn_backward, sinkhorn_forward, sinkhorn_kernels, squash


@triton.jit
def _label_softmax(scores, shifted_label, lane, m, label_score, log_sum, OVER_CLASSES: tl.constexpr):
    """The label's log-softmax, and the softmax of the candidates."""
    if OVER_CLASSES:
        log_softmax = label_score - log_sum
        return log_softmax, tl.exp(scores - shifted_label + log_softmax)
    else:
        exponentials = tl.where(lane < m, tl.exp(scores), 0.0)
        total = tl.sum(exponentials, axis=0)
        return shifted_label - ln(total), exponentials / total


@triton.jit
def forward_kernel(
    logits_ptr,
    labels_ptr,
    p_k_ptr,
    weight_ptr,
    codes_ptr,
    scratch_ptr,
    losses_ptr,
    weights_ptr,
    gradient_ptr,
    columns_ptr,
    dense_ptr,
    row_stride,
    C,
    m,
    K,
    layers,
    scratch_stride,
    p_k_class_stride,
    p_k_row_stride,
    ignore_index,
    beta,
    art_lambda,
    power,
    tolerance,
    floor,
    METHOD: tl.constexpr,
    DISTRIBUTION: tl.constexpr,
    MODE: tl.constexpr,
    OVER_CLASSES: tl.constexpr,
    LINEAR: tl.constexpr,
    FLOORED: tl.constexpr,
    WEIGHTED: tl.constexpr,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    M: tl.constexpr,
    RANKS: tl.constexpr,
    LAYERS: tl.constexpr,
):
    """See `launch.py` for the arguments' meaning; `row_stride` and `C` count in units of VECTOR columns."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * row_stride * VECTOR
    target = tl.load(labels_ptr + row)
    kept = target != ignore_index
    valid = (target >= 0) & (target < C * VECTOR)
    label = tl.where(valid, target, 0).to(tl.int32)
    raw_label = tl.load(row_ptr + label)
    label_score = raw_label.to(tl.float32)
    lane = tl.arange(0, M)

    heads, head_columns, nan, log_sum = group_maxima(row_ptr, C, WIDE, VECTOR, GROUP, TILE_GROUPS, TILES, OVER_CLASSES)
    scores, columns = take_highest(
        row_ptr, heads, head_columns, label, label_score, m, C, WIDE, VECTOR, GROUP, TILE_GROUPS, TILES, M
    )
    inside = lane < m
    shift = tl.max(tl.where(inside, scores, float("-inf")), axis=0)
    scores = tl.where(inside, scores - shift, 0.0)
    shifted = label_score - shift
    log_softmax, softmax = _label_softmax(scores, shifted, lane, m, label_score, log_sum, OVER_CLASSES)
    one_hot = tl.where(lane == 0, 1.0, 0.0)
    p_k_row = p_k_ptr + label * p_k_class_stride + row * p_k_row_stride

    if METHOD == "softmax":
        loss = -log_softmax
        softmax_gradient = -1.0
        gradient = tl.zeros((M,), tl.float32)
    elif METHOD == "neuralsort" or METHOD == "softsort":
        rank = tl.arange(0, RANKS)
        if METHOD == "neuralsort":
            soft, log_ranks = neuralsort(scores, shifted, lane, rank, m, beta)
        else:
            soft, log_ranks = softsort(scores, shifted, lane, rank, m, beta, power, LINEAR)
        loss, by_rank, softmax_gradient = objective(log_ranks, rank, log_softmax, p_k_row, K, floor, MODE, FLOORED)
        by_logit = by_rank[None, :] * (one_hot[:, None] - soft)
        if METHOD == "neuralsort":
            gradient = neuralsort_gradient(scores, lane, rank, m, beta, by_logit)
        else:
            gradient = softsort_gradient(scores, shifted, lane, rank, m, beta, power, by_logit, LINEAR)
    elif METHOD == "sinkhorn":
        scratch = scratch_ptr + row * scratch_stride
        squashed, centred, inverse = squash(scores, lane, m)
        label_squashed = tl.sum(squashed * one_hot, axis=0)
        ranks, candidates, log_label = sinkhorn_kernels(squashed, scores, shifted, label_squashed, lane, m, beta)
        row_scales, column_scales, done = sinkhorn_forward(ranks, candidates, lane, scratch, m, layers, tolerance, M)
        label_scale = tl.sum(column_scales * one_hot, axis=0)
        log_ranks = log_label + ln(tl.where(inside, row_scales, 1.0)) + ln(label_scale)
        loss, by_rank, softmax_gradient = objective(log_ranks, lane, log_softmax, p_k_row, K, floor, MODE, FLOORED)
        gradient = sinkhorn_backward(
            ranks,
            candidates,
            squashed,
            label_squashed,
            centred,
            inverse,
            row_scales,
            column_scales,
            by_rank,
            lane,
            scratch,
            m,
            beta,
            done,
            M,
        )
    else:
        scratch = scratch_ptr + row * scratch_stride
        if LAYERS > 0:
            logs, saved_scores, saved_logs = network_small(
                scores, lane, codes_ptr, beta, art_lambda, DISTRIBUTION, LAYERS, M
            )
        else:
            logs = network_large(scores, lane, scratch, codes_ptr, layers, beta, art_lambda, DISTRIBUTION, M)
        loss, by_rank, softmax_gradient = objective(logs, m - 1 - lane, log_softmax, p_k_row, K, floor, MODE, FLOORED)
        if LAYERS > 0:
            gradient = network_small_back(
                by_rank, lane, codes_ptr, saved_scores, saved_logs, beta, art_lambda, DISTRIBUTION, LAYERS, M
            )
        else:
            gradient = network_large_back(by_rank, lane, scratch, codes_ptr, layers, beta, art_lambda, DISTRIBUTION, M)

    gradient += softmax_gradient * (one_hot - softmax)
    broken = nan | (valid == 0)
    weight = tl.where(kept, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(weight_ptr + label).to(tl.float32)
    loss = tl.where(kept, tl.where(broken, float("nan"), loss), 0.0)
    gradient = tl.where(broken, float("nan"), gradient)
    tl.store(losses_ptr + row, tl.where(kept, loss * weight, 0.0))
    tl.store(weights_ptr + row, weight)
    tl.store(gradient_ptr + row * m + lane, tl.where(kept, gradient, 0.0), mask=inside)
    tl.store(columns_ptr + row * m + lane, columns, mask=inside)
    if OVER_CLASSES:
        tl.store(dense_ptr + row * 2, tl.where(kept, -softmax_gradient, 0.0))
        tl.store(dense_ptr + row * 2 + 1, log_sum)

"""The fused forward: a program selects its rows' candidates, relaxes them, and leaves their gradient and the losses."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .maths import ln
from .networks import network_large, network_large_back, network_small, network_small_back
from .objective import objective, rank_weights
from .pairwise import neuralsort, neuralsort_gradient, softsort, softsort_gradient
from .selection import group_maxima, take_highest
from .sinkhorn import sinkhorn_backward, sinkhorn_forward, sinkhorn_kernels, squash


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


@triton.jit
def _only(values):
    """The one row of a tensor (1, ...)."""
    return tl.sum(values, axis=0)


@triton.jit(do_not_specialize=["rows"])
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
    ZEROS: tl.constexpr,
    CHAINED: tl.constexpr,
    WIDE: tl.constexpr,
    VECTOR: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    TILES: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
    RANKS: tl.constexpr,
    LAYERS: tl.constexpr,
):
    """See `launch.py` for the arguments' meaning; `row_stride` and `C` count in units of VECTOR columns."""
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

    heads, head_columns, nan, log_sum = group_maxima(
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
        OVER_CLASSES,
        ZEROS,
    )
    label_score = tl.load(row_ptrs + label, mask=present, other=0.0).to(tl.float32)
    top1 = tl.load(p_k_ptrs, mask=present, other=0.0).to(tl.float32)
    if METHOD == "neuralsort" or METHOD == "softsort":
        weights = rank_weights(p_k_ptrs, tl.arange(0, RANKS)[None, :], K, 0 if MODE == "sort" else 1, RANKS)
    elif METHOD == "sinkhorn":
        weights = rank_weights(p_k_ptrs, lane[None, :], K, 0 if MODE == "sort" else 1, RANKS)
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

    if METHOD == "softmax":
        loss = -log_softmax
        by_softmax = tl.full((ROWS,), -1.0, tl.float32)
        gradient = tl.zeros((ROWS, M), tl.float32)
    elif METHOD == "neuralsort" or METHOD == "softsort":
        flat = _only(scores)
        own = _only(shifted)
        count = _only(count)
        ranks = tl.arange(0, RANKS)
        if METHOD == "neuralsort":
            soft, log_ranks = neuralsort(flat, own, lane, ranks, count, beta)
        else:
            soft, log_ranks = softsort(flat, own, lane, ranks, count, beta, power, LINEAR)
        weights = tl.where((ranks < count)[None, :], weights, 0.0)
        loss, by_rank, by_softmax = objective(log_ranks[None, :], weights, top1, log_softmax, floor, MODE, FLOORED)
        by_logit = by_rank * (one_hot[:, None] - soft)
        if METHOD == "neuralsort":
            gradient = neuralsort_gradient(flat, lane, ranks, count, beta, by_logit)[None, :]
        else:
            gradient = softsort_gradient(flat, own, lane, ranks, count, beta, power, by_logit, LINEAR)[None, :]
    elif METHOD == "sinkhorn":
        flat = _only(scores)
        own = _only(shifted)
        count = _only(count)
        beta = tl.where(beta > 0, beta, 10.0 * tl.maximum(count - 1, 1))
        scratch = scratch_ptr + tl.program_id(0).to(tl.int64) * scratch_stride
        squashed, centred, inverse = squash(flat, lane, count)
        own_squashed = tl.sum(squashed * one_hot, axis=0)
        ranks, candidates, log_label = sinkhorn_kernels(squashed, flat, own, own_squashed, lane, count, beta)
        row_scales, column_scales, done = sinkhorn_forward(
            ranks, candidates, lane, scratch, count, layers, tolerance, M
        )
        own_scale = tl.sum(column_scales * one_hot, axis=0)
        log_ranks = log_label + ln(tl.where(lane < count, row_scales, 1.0)) + ln(own_scale)
        weights = tl.where((lane < count)[None, :], weights, 0.0)
        loss, by_rank, by_softmax = objective(log_ranks[None, :], weights, top1, log_softmax, floor, MODE, FLOORED)
        gradient = sinkhorn_backward(
            ranks,
            candidates,
            squashed,
            own_squashed,
            centred,
            inverse,
            row_scales,
            column_scales,
            _only(by_rank),
            lane,
            scratch,
            count,
            beta,
            done,
            M,
        )[None, :]
    else:
        scratch = scratch_ptr + row[:, None] * scratch_stride
        used = tl.maximum(count, 1)[:, None]
        codes = codes_ptr + (m - used) * (layers * M) + lane[None, :]
        weights = rank_weights(p_k_ptrs, used - 1 - lane[None, :], K, 0 if MODE == "sort" else 1, RANKS)
        if LAYERS > 0:
            logs, saved_scores, saved_logs = network_small(
                scores, lane, codes, beta, art_lambda, DISTRIBUTION, LAYERS, ROWS, M
            )
        else:
            logs = network_large(scores, lane, scratch, codes, layers, beta, art_lambda, DISTRIBUTION, ROWS, M)
        loss, by_rank, by_softmax = objective(logs, weights, top1, log_softmax, floor, MODE, FLOORED)
        if LAYERS > 0:
            gradient = network_small_back(
                by_rank, lane, codes, saved_scores, saved_logs, beta, art_lambda, DISTRIBUTION, LAYERS, ROWS, M
            )
        else:
            gradient = network_large_back(
                by_rank, lane, scratch, codes, layers, beta, art_lambda, DISTRIBUTION, ROWS, M
            )

    gradient += by_softmax[:, None] * (one_hot[None, :] - softmax)
    broken = nan | (valid == 0)
    hopeless = label_score == float("-inf")
    weight = tl.where(kept, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(weight_ptr + label).to(tl.float32)
    loss = tl.where(broken, float("nan"), tl.where(hopeless, float("inf"), loss))
    gradient = tl.where(finite & (hopeless == 0)[:, None], gradient, 0.0)
    gradient = tl.where(broken[:, None], float("nan"), gradient)
    tl.store(losses_ptr + row, tl.where(kept, loss * weight, 0.0), mask=present)
    tl.store(saved_ptr + row, weight, mask=present)
    saved = saved_ptr + rows + 1 + row * (2 + 2 * m)
    if OVER_CLASSES:
        tl.store(saved, tl.where(kept & (hopeless == 0), -by_softmax, 0.0), mask=present)
        tl.store(saved + 1, log_sum, mask=present)
    at = saved[:, None] + 2 + lane[None, :]
    stored = inside & present[:, None]
    tl.store(at, tl.where(kept[:, None], gradient, 0.0), mask=stored)
    tl.store(at + m, columns.to(tl.float32, bitcast=True), mask=stored)

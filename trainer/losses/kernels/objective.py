"""From log-probabilities of ranks to a row's loss and its gradient."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln


@triton.jit
def rank_weights(p_k_ptr, rank, K, FIRST: tl.constexpr):
    """w_r = sum of p_k over k >= r (0-based), from k = FIRST on; 0 for ranks outside 0..K-1."""
    weights = tl.zeros(rank.shape, tl.float32)
    for k in range(FIRST, K):
        weights += tl.where((rank <= k) & (rank >= 0), tl.load(p_k_ptr + k).to(tl.float32), 0.0)
    return weights


@triton.jit
def objective(log_ranks, rank, log_softmax, p_k_ptr, K, floor, MODE: tl.constexpr, FLOORED: tl.constexpr):
    """The loss of a row and its gradient.

    `log_ranks` holds log P[rank, label] in the lanes with a rank in 0..K-1. Returns the loss, its gradient by
    `log_ranks` and its gradient by `log_softmax`.
    """
    top1 = tl.load(p_k_ptr).to(tl.float32)
    weights = rank_weights(p_k_ptr, rank, K, FIRST=0 if MODE == "sort" else 1)
    terms = tl.where(weights > 0, log_ranks + ln(tl.where(weights > 0, weights, 1.0)), float("-inf"))
    highest = tl.max(terms, axis=0)
    extra = tl.full((), float("-inf"), tl.float32)
    if MODE == "sm":
        extra = tl.where(top1 > 0, log_softmax + ln(tl.where(top1 > 0, top1, 1.0)), float("-inf"))
        highest = tl.maximum(highest, extra)
    if MODE == "smce":
        highest = tl.where(top1 < 1, highest, 0.0)
    exponentials = tl.exp(terms - highest)
    own = tl.exp(extra - highest)
    total = tl.sum(exponentials, axis=0) + own
    some = total > 0
    total = tl.where(some, total, 1.0)
    log_p = highest + ln(total)
    rest = 1.0
    if MODE == "smce":
        rest = rank_weights(p_k_ptr, tl.zeros((1,), tl.int32), K, FIRST=1)
        rest = tl.sum(rest, axis=0)
        log_p = tl.where(some, log_p - ln(tl.where(rest > 0, rest, 1.0)), 0.0)
    factor = 1.0
    if FLOORED:
        lowered = log_p + ln(1 - 2 * floor)
        top = tl.maximum(lowered, ln(floor))
        floored = top + ln(tl.exp(lowered - top) + tl.exp(ln(floor) - top))
        factor = tl.exp(lowered - floored)
        log_p = floored
    loss = -rest * log_p
    rank_gradient = -rest * factor * exponentials / total
    softmax_gradient = -factor * own / total
    if MODE == "smce":
        loss -= top1 * log_softmax
        softmax_gradient = -top1
    return loss, rank_gradient, softmax_gradient

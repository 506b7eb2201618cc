"""From log-probabilities of ranks to a row's loss and its gradient."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln


@triton.jit
def rank_weights(p_k_ptrs, rank, K, FIRST: tl.constexpr, RANKS: tl.constexpr):
    """w_r = sum of p_k over k >= r (0-based), from k = FIRST on; 0 for ranks outside 0..K-1.

    (ROWS, N) for pointers (ROWS,) and ranks (1, N) or (ROWS, N).
    """
    weights = tl.zeros((p_k_ptrs.shape[0], rank.shape[1]), tl.float32)
    for k in tl.static_range(FIRST, RANKS):
        share = tl.load(p_k_ptrs + k, mask=k < K, other=0.0).to(tl.float32)
        weights += tl.where((rank <= k) & (rank >= 0), 1.0, 0.0) * share[:, None]
    return weights


@triton.jit
def membership_weights(p_k_ptrs, rank, K, FIRST: tl.constexpr):
    """p_k from k = FIRST on (0-based), (ROWS, N) for pointers (ROWS,) and ranks (1, N); 0 for ranks outside 0..K-1."""
    return tl.load(p_k_ptrs[:, None] + rank, mask=(rank >= FIRST) & (rank < K), other=0.0).to(tl.float32)


@triton.jit
def objective(
    log_ranks,
    weights,
    top1,
    log_softmax,
    floor,
    MODE: tl.constexpr,
    FLOORED: tl.constexpr,
    MEMBERSHIPS: tl.constexpr = False,
):
    """The losses of rows and their gradients.

    `log_ranks` (ROWS, N) holds log P[r, label] and `weights` (ROWS, N) the weight of that rank, 0 where there is none;
    with MEMBERSHIPS, log P(label among the k best) and p_k. `top1` (ROWS,) is the weight of the softmax. Returns the
    losses, their gradients by `log_ranks` and by `log_softmax`.
    """
    terms = tl.where(weights > 0, log_ranks + ln(tl.where(weights > 0, weights, 1.0)), float("-inf"))
    highest = tl.max(terms, axis=1)
    extra = tl.full(log_softmax.shape, float("-inf"), tl.float32)
    if MODE == "sm":
        extra = tl.where(top1 > 0, log_softmax + ln(tl.where(top1 > 0, top1, 1.0)), float("-inf"))
        highest = tl.maximum(highest, extra)
    if MODE == "smce":
        highest = tl.where(highest > float("-inf"), highest, 0.0)
    exponentials = tl.exp(terms - highest[:, None])
    own = tl.exp(extra - highest)
    total = tl.sum(exponentials, axis=1) + own
    some = total > 0
    total = tl.where(some, total, 1.0)
    log_p = highest + ln(total)
    rest = tl.full(log_softmax.shape, 1.0, tl.float32)
    if MODE == "smce":
        rest = tl.sum(weights, axis=1) if MEMBERSHIPS else tl.max(weights, axis=1)
        log_p = tl.where(some, log_p - ln(tl.where(rest > 0, rest, 1.0)), 0.0)
    factor = tl.full(log_softmax.shape, 1.0, tl.float32)
    if FLOORED:
        lowered = log_p + ln(1 - 2 * floor)
        top = tl.maximum(lowered, ln(floor))
        floored = top + ln(tl.exp(lowered - top) + tl.exp(ln(floor) - top))
        factor = tl.exp(lowered - floored)
        log_p = floored
    losses = -rest * log_p
    by_rank = (-rest * factor / total)[:, None] * exponentials
    by_softmax = -factor * own / total
    if MODE == "smce":
        losses -= top1 * log_softmax
        by_softmax = -top1
    losses = tl.where(losses < 0, 0.0, losses)  # rounding
    return losses, by_rank, by_softmax

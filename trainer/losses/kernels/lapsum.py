"""LapSum on one row, all in registers; candidates along axis 0, numbers of best ones (k) along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from .laplace import log_laplace, threshold
from .maths import LOG2_E, log2, log2_add
from .needs import Needs
from .objective import objective
from .pairwise import only_row


def needs(options: LossOptions, m: int, k: int, width: int, many: bool) -> Needs:
    """See `plan.py`."""
    return Needs(weights=max(triton.next_power_of_2(k), 2))


@triton.jit
def relax(
    row,
    target,
    memory,
    beta,
    setting,
    VARIANT: tl.constexpr,
    MODE: tl.constexpr,
    FLOORED: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
    RANKS: tl.constexpr,
    LAYERS: tl.constexpr,
):
    """See `plan.py`."""
    scores, label_score, count, lane = row
    weights, top1, log_softmax, floor, _, _ = target
    count = only_row(count)
    steep = beta * LOG2_E
    k = tl.arange(0, RANKS) + 1
    asked = (k < count) & (only_row(weights) > 0)
    x = tl.where(lane < count, only_row(scores) * steep, float("-inf"))
    b, log_total = _thresholds(x, tl.where(asked, k.to(tl.float32), 0.5))
    log_p, slope = log_laplace(only_row(label_score) * steep - b)
    log_p = tl.where(asked, log_p, 0.0)
    loss, by_k, by_softmax = objective(log_p[None, :], weights, top1, log_softmax, floor, MODE, FLOORED, True)
    by_inside = tl.where(asked, only_row(by_k) * slope, 0.0)
    # b follows the scores by the implicit function theorem: db / dx_j is the share of F'(x_j - b) in their sum.
    shares = tl.exp2(-tl.abs(x[:, None] - b[None, :]) - log_total[None, :])
    gradient = tl.where(lane == 0, tl.sum(by_inside, axis=0), 0.0) - tl.sum(shares * by_inside[None, :], axis=1)
    return loss, (beta * gradient)[None, :], by_softmax


@triton.jit
def _thresholds(x, k):
    """For each k the threshold b and log2 of the sum of 2^-|x - b|; the highest x is 0, masked ones are -inf."""
    above = tl.zeros_like(k)
    log_a = tl.full(k.shape, float("-inf"), tl.float32)
    log_b = tl.zeros_like(k) + log2(tl.sum(tl.exp2(x), axis=0))
    b = threshold(above, k, log_a, log_b)
    higher = x[:, None] > b[None, :]
    found = tl.sum(higher.to(tl.float32), axis=0)
    while tl.max(found - above, axis=0) > 0:
        grown = found > above
        lowest = tl.min(tl.where(higher, x[:, None], float("inf")), axis=0)
        highest = tl.maximum(tl.max(tl.where(higher, float("-inf"), x[:, None]), axis=0), -1e30)
        near = tl.exp2(tl.where(higher, lowest[None, :] - x[:, None], x[:, None] - highest[None, :]))
        near_above = log2(tl.sum(tl.where(higher, near, 0.0), axis=0)) - lowest
        near_below = log2(tl.sum(tl.where(higher, 0.0, near), axis=0)) + highest
        above = tl.where(grown, found, above)
        log_a = tl.where(grown, near_above, log_a)
        log_b = tl.where(grown, near_below, log_b)
        b = tl.where(grown, threshold(above, k, log_a, log_b), b)
        higher = x[:, None] > b[None, :]
        found = tl.sum(higher.to(tl.float32), axis=0)
    return b, log2_add(log_a + b, log_b - b)

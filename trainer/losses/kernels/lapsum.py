"""LapSum on one row, all in registers; candidates along axis 0, numbers of best ones (k) along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .laplace import NOTHING_BELOW, distances, goes_over, log_laplace, log_shares, margins, shares
from .maths import LOG2_E, log2
from .objective import objective
from .pairwise import only_row


def config(options: LossOptions, m: int, k: int, width: int, many: bool) -> KernelConfig:
    """See `plan.py`."""
    return KernelConfig(weights=max(triton.next_power_of_2(k), 2))


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
    count, own = only_row(count), only_row(label_score)
    steep = beta * LOG2_E
    k = tl.arange(0, RANKS) + 1
    asked = (k < count) & (only_row(weights) > 0)
    flat = tl.where(lane < tl.maximum(count, 1), only_row(scores), float("-inf"))
    lowest, highest, log_a, log_b, under, over = _splits(flat, steep, tl.where(asked, k.to(tl.float32), 0.5))
    log_p, slope = log_laplace(distances(own, steep, lowest, highest, under, over))
    log_p = tl.where(asked, log_p, 0.0)
    loss, by_k, by_softmax = objective(log_p[None, :], weights, top1, log_softmax, floor, MODE, FLOORED, True)
    by_inside = tl.where(asked, only_row(by_k) * slope, 0.0)
    at_lowest, at_highest = log_shares(log_a, log_b, under, over)
    moved = shares(flat[:, None], steep, lowest[None, :], highest[None, :], at_lowest[None, :], at_highest[None, :])
    gradient = tl.where(lane == 0, tl.sum(by_inside, axis=0), 0.0) - tl.sum(moved * by_inside[None, :], axis=1)
    return loss, (beta * gradient)[None, :], by_softmax


@triton.jit
def _splits(scores, steep, k):
    """For each k the split at its threshold, as in `laplace.py`; the highest score is 0, masked ones are -inf."""
    above = tl.zeros_like(k)
    lowest = tl.full(k.shape, float("inf"), tl.float32)
    highest = tl.zeros_like(k)
    log_a = tl.full(k.shape, float("-inf"), tl.float32)
    log_b = tl.zeros_like(k) + log2(tl.sum(tl.exp2(scores * steep), axis=0))
    under, over = margins(above, k, log_a, log_b, (lowest - highest) * steep)
    column = scores[:, None]
    while tl.min(over, axis=0) < 0:
        grown = over < 0
        higher = goes_over(column, steep, highest[None, :], over[None, :])
        low = tl.min(tl.where(higher, column, float("inf")), axis=0)
        high = tl.maximum(tl.max(tl.where(higher, float("-inf"), column), axis=0), NOTHING_BELOW)
        near = tl.exp2(tl.where(higher, low[None, :] - column, column - high[None, :]) * steep)
        log_a = tl.where(grown, log2(tl.sum(tl.where(higher, near, 0.0), axis=0)), log_a)
        log_b = tl.where(grown, log2(tl.sum(tl.where(higher, 0.0, near), axis=0)), log_b)
        above = tl.where(grown, tl.sum(higher.to(tl.float32), axis=0), above)
        lowest = tl.where(grown, low, lowest)
        highest = tl.where(grown, high, highest)
        under, over = margins(above, k, log_a, log_b, (lowest - highest) * steep)
    return lowest, highest, log_a, log_b, under, over

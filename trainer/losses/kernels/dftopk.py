"""DFTopK on one row, all in registers; candidates along axis 0, numbers of best ones (k) along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .maths import LOG2_E, ln
from .objective import objective
from .pairwise import label_place, only_row


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
    flat, own, count = only_row(scores), only_row(label_score), only_row(count)
    rank = tl.arange(0, RANKS)
    asked = (rank + 1 < count) & (only_row(weights) > 0)
    place = label_place(flat, own, lane, count)
    placed = tl.where(lane == 0, place, lane - (lane <= place).to(tl.int32))
    after = placed[:, None] - rank[None, :]  # 0 for the k-th score, 1 for the next
    halves = tl.where((after == 0) | (after == 1), 0.5, 0.0)
    above = beta * tl.sum(halves * (own - flat)[:, None], axis=0)
    tail = tl.exp2(-tl.abs(above) * LOG2_E)
    log_p = tl.where(asked, tl.minimum(above, 0.0) - ln(1 + tail), 0.0)
    loss, by_k, by_softmax = objective(log_p[None, :], weights, top1, log_softmax, floor, MODE, FLOORED, True)
    by_above = tl.where(asked, only_row(by_k) * tl.where(above > 0, tail, 1.0) / (1 + tail), 0.0)
    gradient = tl.where(lane == 0, tl.sum(by_above, axis=0), 0.0) - tl.sum(halves * by_above[None, :], axis=1)
    return loss, (beta * gradient)[None, :], by_softmax

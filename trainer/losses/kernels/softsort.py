"""SoftSort on one row, all in registers; candidates along axis 0, ranks along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .maths import log2
from .objective import objective
from .pairwise import label_place, only_row, sign, softmax_columns, sorted_lanes


def config(options: LossOptions, m: int, k: int, width: int, many: bool) -> KernelConfig:
    """See `plan.py`."""
    return KernelConfig(
        setting=options.softsort_power,
        variant="linear" if options.softsort_power == 1 else "power",
        weights=max(triton.next_power_of_2(k), 2),
        registers=128 if width > 16 else None,
    )


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
    ranks = tl.arange(0, RANKS)
    soft, log_ranks = _relaxed(flat, own, lane, ranks, count, beta, setting, VARIANT == "linear")
    weights = tl.where((ranks < count)[None, :], weights, 0.0)
    loss, by_rank, by_softmax = objective(log_ranks[None, :], weights, top1, log_softmax, floor, MODE, FLOORED)
    by_logit = by_rank * (tl.where(lane == 0, 1.0, 0.0)[:, None] - soft)
    gradient = _gradient(flat, own, lane, ranks, count, beta, setting, by_logit, VARIANT == "linear")
    return loss, gradient[None, :], by_softmax


@triton.jit
def _gaps(scores, label_score, lane, rank, m):
    """s_[r] - s_j at [j, r], s_[r], and where that comes from."""
    source = sorted_lanes(label_place(scores, label_score, lane, m), rank)[None, :] == lane[:, None]
    ordered = tl.sum(tl.where(source, scores[:, None], 0.0), axis=0)
    return ordered[None, :] - scores[:, None], ordered, source


@triton.jit
def _powered(size, power, LINEAR: tl.constexpr):
    if LINEAR:
        return size
    else:
        return tl.exp2(power * log2(tl.maximum(size, 1e-12)))


@triton.jit
def _relaxed(scores, label_score, lane, rank, m, beta, power, LINEAR: tl.constexpr):
    """P transposed and log P[r, label]."""
    gaps, ordered, _ = _gaps(scores, label_score, lane, rank, m)
    logits = tl.where(lane[:, None] < m, -beta * _powered(tl.abs(gaps), power, LINEAR), float("-inf"))
    return softmax_columns(logits, -beta * _powered(tl.abs(ordered - label_score), power, LINEAR))


@triton.jit
def _gradient(scores, label_score, lane, rank, m, beta, power, by_logit, LINEAR: tl.constexpr):
    """Gradient by the scores, from the gradient by the logits of P transposed."""
    gaps, _, source = _gaps(scores, label_score, lane, rank, m)
    slope = sign(gaps)
    if not LINEAR:
        slope *= power * _powered(tl.abs(gaps), power - 1, False)
    moved = tl.where(lane[:, None] < m, beta * slope * by_logit, 0.0)
    back = tl.where(source, tl.sum(moved, axis=0)[None, :], 0.0)
    return tl.sum(moved - back, axis=1)

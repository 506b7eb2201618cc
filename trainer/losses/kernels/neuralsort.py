"""NeuralSort on one row, all in registers; candidates along axis 0, ranks along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .objective import objective
from .pairwise import only_row, sign, softmax_columns


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
    ranks = tl.arange(0, RANKS)
    soft, log_ranks = _relaxed(flat, own, lane, ranks, count, beta)
    weights = tl.where((ranks < count)[None, :], weights, 0.0)
    loss, by_rank, by_softmax = objective(log_ranks[None, :], weights, top1, log_softmax, floor, MODE, FLOORED)
    by_logit = by_rank * (tl.where(lane == 0, 1.0, 0.0)[:, None] - soft)
    return loss, _gradient(flat, lane, ranks, count, beta, by_logit)[None, :], by_softmax


@triton.jit
def _relaxed(scores, label_score, lane, rank, m, beta):
    """P transposed and log P[r, label]; scores outside the m candidates are 0."""
    counted = (lane < m).to(tl.float32)
    gaps = scores[:, None] - scores[None, :]
    deviations = tl.sum(tl.abs(gaps) * counted[:, None], axis=0)
    label_deviation = tl.sum(tl.abs(scores - label_score) * counted, axis=0)
    scaling = (m - 1 - 2 * rank).to(tl.float32) * beta
    logits = scaling[None, :] * scores[:, None] - (deviations * beta)[:, None]
    logits = tl.where(lane[:, None] < m, logits, float("-inf"))
    return softmax_columns(logits, scaling * label_score - beta * label_deviation)


@triton.jit
def _gradient(scores, lane, rank, m, beta, by_logit):
    """Gradient by the scores, from the gradient by the logits of P transposed."""
    scaling = (m - 1 - 2 * rank).to(tl.float32)
    direct = tl.sum(scaling[None, :] * by_logit, axis=1)
    by_deviation = -tl.sum(by_logit, axis=1)
    signs = tl.where(lane[:, None] < m, sign(scores[None, :] - scores[:, None]), 0.0)
    spread = tl.sum(signs, axis=0) * by_deviation + tl.sum(signs * by_deviation[:, None], axis=0)
    return beta * (direct + spread)

"""NeuralSort and SoftSort on one row, all in registers; candidates along axis 0, ranks along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln, log2


@triton.jit
def _sign(x):
    return (x > 0).to(tl.float32) - (x < 0).to(tl.float32)


@triton.jit
def _softmax_columns(logits, label_logits):
    """Softmax over axis 0, and the label's log-softmax."""
    highest = tl.max(logits, axis=0)
    exponentials = tl.exp(logits - highest[None, :])
    total = tl.sum(exponentials, axis=0)
    return exponentials / total[None, :], label_logits - highest - ln(total)


@triton.jit
def neuralsort(scores, label_score, lane, rank, m, beta):
    """P transposed and log P[r, label]; scores outside the m candidates are 0."""
    counted = (lane < m).to(tl.float32)
    gaps = scores[:, None] - scores[None, :]
    deviations = tl.sum(tl.abs(gaps) * counted[:, None], axis=0)
    label_deviation = tl.sum(tl.abs(scores - label_score) * counted, axis=0)
    scaling = (m - 1 - 2 * rank).to(tl.float32) * beta
    logits = scaling[None, :] * scores[:, None] - (deviations * beta)[:, None]
    logits = tl.where(lane[:, None] < m, logits, float("-inf"))
    return _softmax_columns(logits, scaling * label_score - beta * label_deviation)


@triton.jit
def neuralsort_gradient(scores, lane, rank, m, beta, by_logit):
    """Gradient by the scores, from the gradient by the logits of P transposed."""
    scaling = (m - 1 - 2 * rank).to(tl.float32)
    direct = tl.sum(scaling[None, :] * by_logit, axis=1)
    by_deviation = -tl.sum(by_logit, axis=1)
    signs = tl.where(lane[:, None] < m, _sign(scores[None, :] - scores[:, None]), 0.0)
    spread = tl.sum(signs, axis=0) * by_deviation + tl.sum(signs * by_deviation[:, None], axis=0)
    return beta * (direct + spread)


@triton.jit
def label_place(scores, label_score, lane, m):
    """0-based rank of the label among the candidates, below its equals."""
    return tl.sum(((lane > 0) & (lane < m) & (scores >= label_score)).to(tl.int32), axis=0)


@triton.jit
def sorted_lanes(place, rank):
    """Lane of the score at each rank: lanes 1..m-1 are in descending order, lane 0 belongs at `place`."""
    return tl.where(rank < place, rank + 1, tl.where(rank == place, 0, rank))


@triton.jit
def _softsort_gaps(scores, label_score, lane, rank, m):
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
def softsort(scores, label_score, lane, rank, m, beta, power, LINEAR: tl.constexpr):
    """P transposed and log P[r, label]."""
    gaps, ordered, _ = _softsort_gaps(scores, label_score, lane, rank, m)
    logits = tl.where(lane[:, None] < m, -beta * _powered(tl.abs(gaps), power, LINEAR), float("-inf"))
    return _softmax_columns(logits, -beta * _powered(tl.abs(ordered - label_score), power, LINEAR))


@triton.jit
def softsort_gradient(scores, label_score, lane, rank, m, beta, power, by_logit, LINEAR: tl.constexpr):
    """Gradient by the scores, from the gradient by the logits of P transposed."""
    gaps, _, source = _softsort_gaps(scores, label_score, lane, rank, m)
    slope = _sign(gaps)
    if not LINEAR:
        slope *= power * _powered(tl.abs(gaps), power - 1, False)
    moved = tl.where(lane[:, None] < m, beta * slope * by_logit, 0.0)
    back = tl.where(source, tl.sum(moved, axis=0)[None, :], 0.0)
    return tl.sum(moved - back, axis=1)

"""NeuralSort and SoftSort on the candidates of one row, all in registers."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl


@triton.jit
def signs(scores, lane, m):
    """(M, M) float32 signs of s_j - s_i at [j, i], 0 outside the m candidates."""
    higher = (scores[:, None] > scores[None, :]).to(tl.float32)
    lower = (scores[:, None] < scores[None, :]).to(tl.float32)
    return tl.where((lane[:, None] < m) & (lane[None, :] < m), higher - lower, 0.0)


@triton.jit
def log_softmax_rows(logits, lane):
    """Rows' softmax, and the log-softmax of the label's lane."""
    highest = tl.max(logits, axis=1)
    exponentials = tl.exp(logits - highest[:, None])
    total = tl.sum(exponentials, axis=1)
    label = tl.sum(tl.where(lane[None, :] == 0, logits, 0.0), axis=1)
    return exponentials / total[:, None], label - highest - tl.log(total)


@triton.jit
def neuralsort_rows(scores, lane, rank, m, beta):
    """P and log P[r, label] of NeuralSort."""
    deviations = tl.sum(signs(scores, lane, m) * (scores[:, None] - scores[None, :]), axis=1)
    scaling = (m - 1 - 2 * rank).to(tl.float32)
    logits = (scaling[:, None] * scores[None, :] - deviations[None, :]) * beta
    return log_softmax_rows(tl.where(lane[None, :] < m, logits, float("-inf")), lane)


@triton.jit
def neuralsort_gradient(scores, lane, rank, m, beta, logit_gradient):
    """Gradient by the scores, from the gradient by the logits of P."""
    scaling = (m - 1 - 2 * rank).to(tl.float32)
    direct = tl.sum(scaling[:, None] * logit_gradient, axis=0)
    deviation = -tl.sum(logit_gradient, axis=0)
    through = tl.sum(signs(scores, lane, m) * (deviation[:, None] + deviation[None, :]), axis=1)
    return beta * (direct + through)


@triton.jit
def sorted_lanes(scores, lane, rank, m):
    """Lane of the score at each rank: lane 0 is anywhere, lanes 1..m-1 are in descending order."""
    label = tl.sum(tl.where(lane == 0, scores, 0.0), axis=0)
    label_rank = tl.sum(((lane > 0) & (lane < m) & (scores >= label)).to(tl.int32), axis=0)
    return tl.where(rank < label_rank, rank + 1, tl.where(rank == label_rank, 0, rank))


@triton.jit
def softsort_distance(scores, lane, rank, m):
    """s_[r] - s_j at [r, j], and where s_[r] comes from."""
    source = sorted_lanes(scores, lane, rank, m)[:, None] == lane[None, :]
    ordered = tl.sum(tl.where(source, scores[None, :], 0.0), axis=1)
    return ordered[:, None] - scores[None, :], source


@triton.jit
def softsort_rows(scores, lane, rank, m, beta, power, LINEAR: tl.constexpr):
    """P and log P[r, label] of SoftSort."""
    distance, _ = softsort_distance(scores, lane, rank, m)
    size = tl.abs(distance)
    if not LINEAR:
        size = tl.exp(power * tl.log(tl.maximum(size, 1e-12)))
    return log_softmax_rows(tl.where(lane[None, :] < m, -beta * size, float("-inf")), lane)


@triton.jit
def softsort_gradient(scores, lane, rank, m, beta, power, logit_gradient, LINEAR: tl.constexpr):
    """Gradient by the scores, from the gradient by the logits of P."""
    distance, source = softsort_distance(scores, lane, rank, m)
    slope = (distance > 0).to(tl.float32) - (distance < 0).to(tl.float32)
    if not LINEAR:
        slope *= power * tl.exp((power - 1) * tl.log(tl.maximum(tl.abs(distance), 1e-12)))
    moved = tl.where(lane[None, :] < m, beta * slope * logit_gradient, 0.0)
    back = tl.sum(tl.where(source, tl.sum(moved, axis=1)[:, None], 0.0), axis=0)
    return tl.sum(moved, axis=0) - back

"""SinkhornSort on the candidates of one row: scaling iterations on a kernel that starts at the optimal potentials.

The kernel is held twice, with ranks and with candidates along axis 0, because sums along axis 0 stay within threads.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from ...loss_defaults import SINKHORN_STEEPNESS
from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .maths import ln
from .objective import objective
from .pairwise import label_place, only_row, sorted_lanes

STEEPNESS = tl.constexpr(SINKHORN_STEEPNESS)


def config(options: LossOptions, m: int, k: int, width: int, many: bool) -> KernelConfig:
    """See `plan.py`."""
    iterations = options.sinkhorn_iterations
    return KernelConfig(
        setting=options.sinkhorn_tolerance,
        weights=width,
        layers=iterations,
        scratch=iterations * width,
        warps=2 if width > 32 else 1,
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
    scratch_ptr, _, layers, _, _ = memory
    flat, own, count = only_row(scores), only_row(label_score), only_row(count)
    beta = tl.where(beta > 0, beta, STEEPNESS * tl.maximum(count - 1, 1))
    scratch = scratch_ptr + tl.program_id(0).to(tl.int64) * (layers * M)
    squashed, centred, inverse = _squash(flat, lane, count)
    one_hot = tl.where(lane == 0, 1.0, 0.0)
    own_squashed = tl.sum(squashed * one_hot, axis=0)
    ranks, candidates, log_label = _kernels(squashed, flat, own, own_squashed, lane, count, beta)
    row_scales, column_scales, done = _forward(ranks, candidates, lane, scratch, count, layers, setting, M)
    own_scale = tl.sum(column_scales * one_hot, axis=0)
    log_ranks = log_label + ln(tl.where(lane < count, row_scales, 1.0)) + ln(own_scale)
    weights = tl.where((lane < count)[None, :], weights, 0.0)
    loss, by_rank, by_softmax = objective(log_ranks[None, :], weights, top1, log_softmax, floor, MODE, FLOORED)
    gradient = _backward(
        ranks,
        candidates,
        squashed,
        own_squashed,
        centred,
        inverse,
        row_scales,
        column_scales,
        only_row(by_rank),
        lane,
        scratch,
        count,
        beta,
        done,
        M,
    )
    return loss, gradient[None, :], by_softmax


@triton.jit
def _squash(scores, lane, m):
    """Squashed scores, their distance from the mean, and 1 / sqrt(1 + variance)."""
    inside = lane < m
    centred = tl.where(inside, scores - tl.sum(tl.where(inside, scores, 0.0), axis=0) / m, 0.0)
    inverse = 1 / tl.sqrt(1 + tl.sum(centred * centred, axis=0) / m)
    return 1 / (1 + tl.exp(-centred * inverse)), centred, inverse


@triton.jit
def _targets(lane, m):
    return 1 - lane.to(tl.float32) / tl.maximum(m - 1, 1)


@triton.jit
def _first_columns(squashed, scores, label_score, lane, m, beta):
    """The potentials of the unregularised problem, whose plan is the sorting permutation."""
    place = label_place(scores, label_score, lane, m)
    source = tl.where(lane < m, sorted_lanes(place, lane), lane)
    others = tl.where(scores < label_score, lane, lane - 1)
    places = tl.where(lane >= m, lane, tl.where(lane == 0, place, others))
    ordered = tl.gather(squashed, source, 0)
    following = tl.gather(ordered, tl.minimum(lane + 1, m - 1), 0)
    middle = _targets(lane, m) - 0.5 / tl.maximum(m - 1, 1)
    steps = tl.where(lane < m - 1, 2 * beta * middle * (ordered - following), 0.0)
    sums = tl.cumsum(steps, axis=0) - steps
    return tl.gather(sums, places, 0) + beta * squashed * squashed


@triton.jit
def _kernels(squashed, scores, label_score, label_squashed, lane, m, beta):
    """The kernel, scaled by the first potentials and to a highest value of 1 in each rank.

    Returns:
        (M, M) ranks by candidates, (M, M) candidates by ranks, and (M,) the logarithm of the label's column.
    """
    columns = _first_columns(squashed, scores, label_score, lane, m, beta)
    targets = _targets(lane, m)
    inside = lane < m
    gaps = targets[None, :] - squashed[:, None]
    logs = tl.where(inside[:, None], columns[:, None] - beta * gaps * gaps, float("-inf"))
    highest = tl.max(logs, axis=0)
    by_candidate = tl.where(inside[None, :], tl.exp(logs - highest[None, :]), 0.0)
    gaps = targets[:, None] - squashed[None, :]
    logs = columns[None, :] - beta * gaps * gaps - highest[:, None]
    by_rank = tl.where(inside[:, None] & inside[None, :], tl.exp(logs), 0.0)
    gaps = targets - label_squashed
    label_column = tl.sum(tl.where(lane == 0, columns, 0.0), axis=0)
    return by_rank, by_candidate, label_column - beta * gaps * gaps - highest


@triton.jit
def _multiply(kernel, vector):
    """Sum over axis 0 of kernel times vector."""
    return tl.sum(kernel * vector[:, None], axis=0)


@triton.jit
def _inverse(sums, inside):
    return tl.where(inside, 1 / tl.where(inside, sums, 1.0), 0.0)


@triton.jit
def _forward(by_rank, by_candidate, lane, scratch, m, iterations, tolerance, M: tl.constexpr):
    """Scale the kernel; `scratch` keeps the row scales (M,) of each iteration.

    Returns:
        Row scales, column scales, and how many column updates were made.
    """
    inside = lane < m
    columns = tl.where(inside, 1.0, 0.0)
    rows = _inverse(_multiply(by_candidate, columns), inside)
    tl.store(scratch + lane, rows)
    done = 0
    step = 1
    while step < iterations:
        new = _inverse(_multiply(by_rank, rows), inside)
        change = tl.abs(ln(tl.where(inside, new, 1.0) / tl.where(inside, columns, 1.0)))
        if tl.max(change, axis=0) > tolerance:
            columns = new
            rows = _inverse(_multiply(by_candidate, columns), inside)
            done = step
            tl.store(scratch + step * M + lane, rows)
            step += 1
        else:
            step = iterations
    return rows, columns, done


@triton.jit
def _backward(
    by_rank,
    by_candidate,
    squashed,
    label_squashed,
    centred,
    inverse,
    rows,
    columns,
    rank_gradient,
    lane,
    scratch,
    m,
    beta,
    done,
    M: tl.constexpr,
):
    """Gradient (M,) by the scores, through the iterations as they ran."""
    inside = lane < m
    targets = _targets(lane, m)
    by_columns = tl.where(lane == 0, tl.sum(rank_gradient, axis=0), 0.0)
    by_rows = rank_gradient
    by_plan = tl.zeros((M, M), tl.float32)
    tl.debug_barrier()
    for back in range(done):
        scaled = by_rows * rows
        by_columns = (by_columns - columns * _multiply(by_rank, scaled)) * columns
        rows = tl.load(scratch + (done - 1 - back) * M + lane)
        by_plan += scaled[:, None] * columns[None, :] + rows[:, None] * by_columns[None, :]
        by_rows = -rows * _multiply(by_candidate, by_columns)
        by_columns = tl.zeros((M,), tl.float32)
        before = tl.load(scratch + tl.maximum(done - 2 - back, 0) * M + lane)
        first = tl.where(inside, 1.0, 0.0)
        columns = tl.where(back == done - 1, first, _inverse(_multiply(by_rank, before), inside))
    by_plan += (by_rows * rows)[:, None] * columns[None, :]
    by_squashed = -tl.sum(by_plan * by_rank * (targets[:, None] - squashed[None, :]), axis=0)
    by_squashed += tl.where(lane == 0, tl.sum(rank_gradient * (targets - label_squashed), axis=0), 0.0)
    by_centred = tl.where(inside, 2 * beta * by_squashed * squashed * (1 - squashed), 0.0)
    pull = tl.sum(by_centred * centred, axis=0) * inverse * inverse * inverse / m
    by_centred = by_centred * inverse - pull * centred
    return tl.where(inside, by_centred - tl.sum(by_centred, axis=0) / m, 0.0)

"""SinkhornSort on the candidates of one row: scaling iterations on a kernel that starts at the optimal potentials."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .pairwise import sorted_lanes


@triton.jit
def squash(scores, lane, m):
    """Squashed scores, their distance from the mean, and 1 / sqrt(1 + variance)."""
    inside = lane < m
    centred = tl.where(inside, scores - tl.sum(tl.where(inside, scores, 0.0), axis=0) / m, 0.0)
    inverse = 1 / tl.sqrt(1 + tl.sum(centred * centred, axis=0) / m)
    return 1 / (1 + tl.exp(-centred * inverse)), centred, inverse


@triton.jit
def _targets(lane, m):
    return 1 - lane.to(tl.float32) / tl.maximum(m - 1, 1)


@triton.jit
def _first_columns(squashed, scores, lane, m, beta):
    """The potentials of the unregularised problem, whose plan is the sorting permutation."""
    label = tl.sum(tl.where(lane == 0, scores, 0.0), axis=0)
    source = sorted_lanes(scores, lane, lane, m)
    others = tl.where((lane > 0) & (scores < label), lane, lane - 1)
    label_place = tl.sum(((lane > 0) & (lane < m) & (scores >= label)).to(tl.int32), axis=0)
    place = tl.where(lane >= m, lane, tl.where(lane == 0, label_place, others))
    ordered = tl.gather(squashed, tl.where(lane < m, source, lane), 0)
    next_ordered = tl.gather(ordered, tl.minimum(lane + 1, m - 1), 0)
    middle = _targets(lane, m) - 0.5 / tl.maximum(m - 1, 1)
    steps = tl.where(lane < m - 1, 2 * beta * middle * (ordered - next_ordered), 0.0)
    sums = tl.cumsum(steps, axis=0) - steps
    return tl.gather(sums, place, 0) + beta * squashed * squashed


@triton.jit
def sinkhorn_kernel(squashed, scores, lane, m, beta):
    """(M, M) kernel scaled by the first potentials, rows (ranks) by candidates, and the logarithm of its label column."""
    gap = _targets(lane, m)[:, None] - squashed[None, :]
    logs = _first_columns(squashed, scores, lane, m, beta)[None, :] - beta * gap * gap
    logs = tl.where(lane[None, :] < m, logs, float("-inf"))
    logs -= tl.max(logs, axis=1)[:, None]
    label = tl.sum(tl.where(lane[None, :] == 0, logs, 0.0), axis=1)
    return tl.where((lane[:, None] < m) & (lane[None, :] < m), tl.exp(logs), 0.0), label


@triton.jit
def sinkhorn_forward(kernel, lane, scratch, m, iterations, tolerance, M: tl.constexpr):
    """Scale the kernel; `scratch` keeps the row scales (M,) of each iteration.

    Returns:
        Row scales, column scales, and how many column updates were made.
    """
    inside = lane < m
    columns = tl.where(inside, 1.0, 0.0)
    rows = tl.where(inside, 1 / tl.where(inside, tl.sum(kernel, axis=1), 1.0), 0.0)
    tl.store(scratch + lane, rows)
    done = 0
    moving = tl.full((), 1, tl.int1)
    step = 1
    while (step < iterations) & moving:
        sums = tl.sum(kernel * rows[:, None], axis=0)
        new = tl.where(inside, 1 / tl.where(inside, sums, 1.0), 0.0)
        change = tl.where(inside, tl.abs(tl.log(tl.where(inside, new / columns, 1.0))), 0.0)
        moving = tl.max(change, axis=0) > tolerance
        if moving:
            columns = new
            sums = tl.sum(kernel * columns[None, :], axis=1)
            rows = tl.where(inside, 1 / tl.where(inside, sums, 1.0), 0.0)
            done = step
            tl.store(scratch + step * M + lane, rows)
        step += 1
    return rows, columns, done


@triton.jit
def sinkhorn_backward(
    kernel, squashed, centred, inverse, rows, columns, rank_gradient, lane, scratch, m, beta, done, M: tl.constexpr
):
    """Gradient (M,) by the scores, through the iterations as they ran."""
    inside = lane < m
    targets = _targets(lane, m)
    label = tl.where(lane == 0, 1.0, 0.0)
    total = tl.sum(rank_gradient, axis=0)
    by_columns = label * total
    label_squashed = tl.sum(squashed * label, axis=0)
    by_squashed = label * tl.sum(rank_gradient * (targets - label_squashed), axis=0)
    by_rows = rank_gradient
    tl.debug_barrier()
    for back in range(done):
        scaled = by_rows * rows
        moved = tl.sum(kernel * scaled[:, None], axis=0)
        weighted = tl.sum(kernel * (scaled * targets)[:, None], axis=0)
        by_squashed -= columns * (weighted - squashed * moved)
        by_columns -= columns * moved
        rows = tl.load(scratch + (done - 1 - back) * M + lane)
        scaled_columns = by_columns * columns
        sums = tl.sum(kernel * rows[:, None], axis=0)
        weighted = tl.sum(kernel * (rows * targets)[:, None], axis=0)
        by_squashed -= scaled_columns * (weighted - squashed * sums)
        by_rows = -rows * tl.sum(kernel * scaled_columns[None, :], axis=1)
        by_columns = tl.zeros((M,), tl.float32)
        before = tl.load(scratch + tl.maximum(done - 2 - back, 0) * M + lane)
        sums = tl.sum(kernel * before[:, None], axis=0)
        previous = tl.where(inside, 1 / tl.where(inside, sums, 1.0), 0.0)
        columns = tl.where(back == done - 1, tl.where(inside, 1.0, 0.0), previous)
    scaled = by_rows * rows
    moved = tl.sum(kernel * scaled[:, None], axis=0)
    weighted = tl.sum(kernel * (scaled * targets)[:, None], axis=0)
    by_squashed -= columns * (weighted - squashed * moved)
    by_centred = 2 * beta * by_squashed * squashed * (1 - squashed)
    by_centred = tl.where(inside, by_centred, 0.0)
    pull = tl.sum(by_centred * centred, axis=0) * inverse * inverse * inverse / m
    by_centred = by_centred * inverse - pull * centred
    return tl.where(inside, by_centred - tl.sum(by_centred, axis=0) / m, 0.0)

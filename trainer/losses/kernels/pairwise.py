"""What the kernels of one row a program share; candidates along axis 0, ranks along axis 1."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import ln


@triton.jit
def only_row(values):
    """The one row of a tensor (1, ...)."""
    return tl.sum(values, axis=0)


@triton.jit
def sign(x):
    """-1, 0 or 1."""
    return (x > 0).to(tl.float32) - (x < 0).to(tl.float32)


@triton.jit
def softmax_columns(logits, label_logits):
    """Softmax over axis 0, and the label's log-softmax."""
    highest = tl.max(logits, axis=0)
    exponentials = tl.exp(logits - highest[None, :])
    total = tl.sum(exponentials, axis=0)
    return exponentials / total[None, :], label_logits - highest - ln(total)


@triton.jit
def label_place(scores, label_score, lane, m):
    """0-based rank of the label among the candidates, below its equals."""
    return tl.sum(((lane > 0) & (lane < m) & (scores >= label_score)).to(tl.int32), axis=0)


@triton.jit
def sorted_lanes(place, rank):
    """Lane of the score at each rank: lanes 1..m-1 are in descending order, lane 0 belongs at `place`."""
    return tl.where(rank < place, rank + 1, tl.where(rank == place, 0, rank))

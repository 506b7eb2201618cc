"""The ranks of labels in one pass over the logits."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def fused_label_ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """See `label_ranks`; logits ``(B, C)`` contiguous, labels ``(B,)`` int64, both on a CUDA device."""
    ranks = torch.empty_like(labels)
    if len(labels):
        _label_ranks[(len(labels),)](logits, labels, ranks, logits.shape[1], BLOCK=_BLOCK, num_warps=4)
    return ranks


@triton.jit
def _label_ranks(logits_ptr, labels_ptr, ranks_ptr, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    own = tl.load(logits_ptr + row * classes + label)
    before = tl.zeros((BLOCK,), tl.int32)
    broken = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, classes, BLOCK):
        column = start + tl.arange(0, BLOCK)
        logit = tl.load(logits_ptr + row * classes + column, mask=column < classes, other=float("-inf"))
        tied = (logit == own) & (column < label)
        before += ((logit > own) | tied).to(tl.int32)
        broken += (logit != logit).to(tl.int32)
    rank = tl.where(tl.sum(broken, axis=0) > 0, classes, tl.sum(before, axis=0))
    tl.store(ranks_ptr + row, rank.to(tl.int64))

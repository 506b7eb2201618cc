"""Ranks of labels where the logits are: on a GPU, or on a CPU."""

import torch
from torch import Tensor

from ...metrics.ranks import ranks


def label_ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """How many classes come before the label when a row is sorted.

    Equal scores are ordered by class index, the lower first. A row that holds NaN has its label last.

    Args:
        logits: ``(B, C)``, any floating dtype.
        labels: ``(B,)`` int64 in 0..C-1.

    Returns:
        ``(B,)`` int64 in 0..C; the label is among the top k when its rank is below k. C means a row with NaN.
    """
    if logits.is_cuda:
        from .label_ranks_kernel import fused_label_ranks

        return fused_label_ranks(logits.contiguous(), labels)
    rows = logits.detach() if logits.dtype in (torch.float32, torch.float64) else logits.detach().float()
    return torch.from_numpy(ranks(rows.numpy(), labels.numpy()))

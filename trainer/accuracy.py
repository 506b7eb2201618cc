"""Top-k accuracy, on the device that holds the logits."""

import torch
from torch import Tensor


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
        from .accuracy_kernel import fused_label_ranks

        return fused_label_ranks(logits.contiguous(), labels)
    own = logits.gather(1, labels[:, None])
    earlier = torch.arange(logits.shape[1], device=logits.device) < labels[:, None]
    ranks = ((logits > own) | ((logits == own) & earlier)).sum(1)
    return torch.where(logits.isnan().any(1), logits.shape[1], ranks)

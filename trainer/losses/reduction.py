"""From losses of labels to the result, with PyTorch's meaning of `weight`, `ignore_index` and `reduction`."""

from torch import Tensor


def label_shares(labels: Tensor, ignore_index: int) -> Tensor:
    """Each label's share of its row, (B, L) float32: equal over the labels that are not ignored, else 0."""
    kept = labels != ignore_index
    return kept.float() / kept.sum(dim=1, keepdim=True).clamp_min(1)


def reduce_rows(losses: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """Reduce weighted losses.

    Args:
        losses: (B,), already multiplied by their weights.
        weights: (B,), 0 for ignored rows.
        reduction: `none`, `sum`, or `mean`, which divides by the sum of the weights and is 0 when that is 0.

    Returns:
        (B,) for `none`, a scalar otherwise.
    """
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    total = weights.sum()
    return losses.sum() / total.where(total > 0, 1.0)

"""From losses of labels to the result, with PyTorch's meaning of `weight`, `ignore_index` and `reduction`."""

from torch import Tensor

from .targets import is_soft


def label_columns(labels: Tensor, weight: Tensor | None, ignore_index: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Any form of labels as several labels a row, and what each of them counts.

    Soft targets wait for the device, because the number of columns is the largest number of non-zero shares in a row.

    Args:
        labels: (B,), (B, L) integers, or (B, C) floating.
        weight: (C,) class weights.
        ignore_index: the label that is left out.
        num_classes: C.

    Returns:
        labels (B, L) int64 and shares (B, L): equal shares of integer labels that are not ignored, a soft target's own
        shares, each times its class weight; 0 fills up.
    """
    if is_soft(labels):
        width = max(int((labels != 0).sum(dim=1).max()), 1) if len(labels) else 1
        columns = labels.abs().topk(width, dim=1).indices
        shares = labels.gather(1, columns)
    else:
        columns = labels.long() if labels.ndim == 2 else labels.long().unsqueeze(1)
        kept = columns != ignore_index
        shares = kept.float() / kept.sum(dim=1, keepdim=True).clamp_min(1)
    if weight is not None:
        shares = shares * weight[columns.clamp(0, num_classes - 1)]
    return columns, shares


def row_weights(labels: Tensor, weight: Tensor | None, ignore_index: int, num_classes: int) -> Tensor:
    """What each row counts in a mean, (B,): 0 if ignored, else its labels' mean class weight, or 1 for soft targets."""
    if is_soft(labels):
        return (labels != 0).any(dim=1).float()
    if labels.ndim == 2:
        return label_columns(labels, weight, ignore_index, num_classes)[1].sum(dim=1)
    kept = (labels != ignore_index).float()
    return kept if weight is None else kept * weight[labels.long().clamp(0, num_classes - 1)]


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

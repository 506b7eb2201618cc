"""From losses of labels to the result, with PyTorch's meaning of `weight`, `ignore_index` and `reduction`."""

from collections.abc import Callable

import torch
from torch import Tensor

from .targets import is_soft, sound_shares

LEFT_OUT = -(2**31)


def label_columns(labels: Tensor, weight: Tensor | None, ignore_index: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Any form of labels as several labels a row, and what each of them counts.

    Soft targets wait for the device, because L is the largest number of non-zero shares in a row; in a compiled graph
    and on meta, which cannot, L is C.

    Args:
        labels: (B,), (B, L) integers, or (B, C) floating.
        weight: (C,) class weights.
        ignore_index: the label that is left out.
        num_classes: C.

    Returns:
        labels (B, L) int64 and shares (B, L): equal shares of integer labels that are not ignored, a soft target's own
        shares, each times its class weight; 0 fills up. Soft targets that are negative or infinite become NaN.
    """
    if is_soft(labels):
        labels = labels.where(sound_shares(labels), torch.nan)
    if is_soft(labels) and (torch.compiler.is_compiling() or labels.device.type == "meta"):
        columns, shares = torch.arange(num_classes, device=labels.device).expand_as(labels), labels
    elif is_soft(labels):
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


def mixed_losses(
    logits: Tensor, columns: Tensor, shares: Tensor, losses: Callable[[Tensor, Tensor, int], Tensor]
) -> Tensor:
    """The sum over a row's labels of share times loss.

    Label after label, so that the logits are held once; a compiled graph repeats them, so that it stays small.

    Args:
        logits: (B, C) floating.
        columns: (B, L) labels.
        shares: (B, L), 0 for labels that do not count.
        losses: from logits (B * R, C), labels (B * R,), where those that do not count are `LEFT_OUT`, and R, how
            often each row is repeated, to losses (B * R,), 0 for those.

    Returns:
        (B,) in float32 or float64, as `losses`.
    """
    step = columns.shape[1] if torch.compiler.is_compiling() else 1
    total = logits.new_zeros(len(logits), dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)
    for column, share in zip(columns.split(step, dim=1), shares.split(step, dim=1), strict=True):
        times = column.shape[1]
        rows = logits.unsqueeze(1).expand(-1, times, -1).flatten(0, 1)
        values = losses(rows, column.where(share != 0, LEFT_OUT).flatten(), times)
        total = total + (share * values.view(-1, times)).sum(dim=1)
    return total


def row_weights(labels: Tensor, weight: Tensor | None, ignore_index: int, num_classes: int) -> Tensor:
    """What each row counts in a mean, (B,): 0 if ignored, else its labels' mean class weight, or 1 for soft targets."""
    if is_soft(labels):
        return (labels != 0).any(dim=1).float()
    if labels.ndim == 2:
        return label_columns(labels, weight, ignore_index, num_classes)[1].sum(dim=1)
    kept = (labels != ignore_index).float()
    return kept if weight is None else kept * weight[labels.long().clamp(0, num_classes - 1)]


def hardest_rows(losses: Tensor, counted: Tensor, share: float) -> Tensor:
    """What each row's loss counts in the mean of the hardest ones (Fan, Lyu, Ying, Hu: average top-k, NeurIPS 2017).

    Args:
        losses: (B,).
        counted: (B,) bool, the n rows that are not ignored.
        share: of those that are kept, in (0, 1]; k is that of n, rounded up.

    Returns:
        (B,): n / k for the k highest, 0 for the others; equal losses at the k-th place share what is left.
    """
    if not len(losses):
        return losses
    count = counted.sum().to(losses)
    kept = (count * share - 1e-4).ceil().clamp_min(1)
    ordered = losses.where(counted, -torch.inf).sort(descending=True).values
    limit = ordered.gather(0, (kept.long() - 1).unsqueeze(0))
    above, at = counted & (losses > limit), counted & (losses == limit)
    left = (kept - above.sum()) / at.sum().clamp_min(1)
    return (above + at * left) * count / kept


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

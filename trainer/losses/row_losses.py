"""What the losses beside top-k cross-entropy share: checks, forms of labels, weights, and the reduction."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .reduction import label_columns, reduce_rows, row_weights
from .settings import choice
from .targets import check_labels, check_logits

RowLosses = Callable[[Tensor, Tensor], Tensor]


def check_k(k: int, num_classes: int | None = None) -> int:
    """Return k, or raise ValueError when it is outside 1..C."""
    if k < 1 or (num_classes is not None and k > num_classes):
        found = "" if num_classes is None else f" for {num_classes} classes"
        raise ValueError(f"k is {k}{found}, expected 1..{'C' if num_classes is None else num_classes}")
    return k


def reduced(
    row_losses: RowLosses,
    logits: Tensor,
    labels: Tensor,
    k: int,
    *,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Apply `row_losses` to every label of a batch.

    Args:
        row_losses: from logits (B, C) in float32 or float64 and labels (B,) in range to losses (B,).
        logits: (B, C) floating.
        labels: (B,), (B, L) integers, or (B, C) soft targets.
        k: checked against C.
        weight: (C,) class weights.
        ignore_index: the label that is left out.
        reduction: `mean`, `sum` or `none`.

    Returns:
        A scalar, or (B,) for reduction `none`.

    Raises:
        ValueError: k, shapes, devices or the reduction are off.
        IndexError: a label out of range.
        TypeError: logits or labels of the wrong type.
    """
    check_logits(logits)
    classes = check_k(k, logits.shape[1]) and logits.shape[1]
    check_labels(labels, len(logits), classes, logits.device, ignore_index)
    choice("reduction", reduction, ("mean", "sum", "none"))
    columns, shares = label_columns(labels, weight, ignore_index, classes)
    scores = logits if logits.dtype == torch.float64 else logits.float()
    kept = (shares != 0).any(dim=1)
    scores = scores.where(kept.unsqueeze(1), 0.0)
    losses = scores.new_zeros(len(scores))
    for column, share in zip(columns.unbind(1), shares.unbind(1), strict=True):
        inside = (column >= 0) & (column < classes)
        value = row_losses(scores, column.where(inside, 0)).where(inside & ~scores.isnan().any(dim=1), torch.nan)
        losses = losses + value.where(share != 0, 0.0) * share
    return reduce_rows(losses, row_weights(labels, weight, ignore_index, classes), reduction)


def split_label(scores: Tensor, labels: Tensor, fill: float = -torch.inf) -> tuple[Tensor, Tensor]:
    """The label's score (B,), and the scores with `fill` in its place (B, C)."""
    label = labels.unsqueeze(1)
    return scores.gather(1, label).squeeze(1), scores.scatter(1, label, fill)


class RowLoss(nn.Module, ABC):
    """Base of the modules: k, and the keywords that they have in common.

    Args:
        k: the k of top-k, 1..C.
        weight: (C,) class weights, as in `torch.nn.CrossEntropyLoss`.
        ignore_index: label that is left out.
        reduction: `mean` (0 for an empty or wholly ignored batch), `sum` or `none`.
    """

    weight: Tensor | None

    def __init__(
        self, k: int = 5, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.k = check_k(k)
        self.ignore_index = ignore_index
        self.reduction = choice("reduction", reduction, ("mean", "sum", "none"))
        self.register_buffer("weight", weight, persistent=False)

    @abstractmethod
    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar or (B,)."""
        if self.weight is not None and self.weight.device != logits.device:
            self.weight = self.weight.to(logits.device)
        return reduced(
            self.row_losses,
            logits,
            labels,
            self.k,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        """The options."""
        return f"k={self.k}, reduction={self.reduction!r}, ignore_index={self.ignore_index}"

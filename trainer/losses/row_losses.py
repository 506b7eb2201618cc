"""What the losses beside top-k cross-entropy share: checks, forms of labels, weights, and the reduction."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...core.arguments import named
from ..option_checks import choice, number
from .reduction import LEFT_OUT, label_columns, mixed_losses, reduce_rows, row_weights
from .targets import check_class_weight, check_labels, check_logits, check_weights

_MASKED = -1e30
RowLosses = Callable[[Tensor, Tensor], Tensor]


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
        row_losses: from logits (B, C) in float32 or float64, none of them minus infinity, and labels (B,) in range to
            losses (B,).
        logits: (B, C) floating, checked.
        labels: (B,), (B, L) integers, or (B, C) soft targets.
        k: checked against C.
        weight: (C,) class weights.
        ignore_index: the label that is left out.
        reduction: `mean`, `sum` or `none`.

    Returns:
        A scalar, or (B,) for reduction `none`.

    Raises:
        ValueError: k, shapes or devices are off.
        IndexError: a label out of range.
        TypeError: labels of the wrong type.
    """
    classes = logits.shape[1]
    if k > classes:
        raise ValueError(f"k: {k} found for {classes} classes, expected 1..{classes}")
    check_labels(labels, len(logits), classes, logits.device, ignore_index)
    check_class_weight("weight", weight, classes, logits.device)
    columns, shares = label_columns(labels, weight, ignore_index, classes)
    scores = logits if logits.dtype == torch.float64 else logits.float()
    kept = (shares != 0).any(dim=1)

    def losses(scores: Tensor, labels: Tensor, times: int) -> Tensor:
        inside = (labels >= 0) & (labels < classes)
        used, masked = labels.where(inside, 0), scores == -torch.inf
        label_masked = masked.gather(1, used.unsqueeze(1)).squeeze(1)
        values = row_losses(scores.masked_fill(masked, _MASKED), used).where(~label_masked, torch.inf)
        values = values.where(inside & ~scores.isnan().any(dim=1), torch.nan)
        return values.where(labels != LEFT_OUT, 0.0)

    total = mixed_losses(scores.where(kept.unsqueeze(1), 0.0), columns, shares, losses)
    return reduce_rows(total, row_weights(labels, weight, ignore_index, classes), reduction)


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

    @named
    def __init__(
        self, k: int = 5, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.k: int = number("k", k, "a whole number in 1..C", lambda x: x >= 1, whole=True)
        self.ignore_index = number("ignore_index", ignore_index, "a whole number", whole=True)
        self.reduction = choice("reduction", reduction, ("mean", "sum", "none"))
        if weight is not None:
            check_weights("weight", weight)
        self.register_buffer("weight", weight)

    @abstractmethod
    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar or (B,)."""
        check_logits(logits)
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

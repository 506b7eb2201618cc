"""The losses for one k as modules of their own: checks, forms of labels, weights, and the reduction."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from ...core.arguments import named
from ..option_checks import choice, number
from .candidates import losses_of_candidates
from .reduction import LEFT_OUT, label_columns, mixed_losses, reduce_rows, row_weights
from .targets import check_class_weight, check_labels, check_logits, check_weights


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
    def label_losses(self, scores: Tensor) -> Tensor:
        """Losses (B,) of scores (B, C), the label's first, the others in descending order, minus infinity if masked."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar or (B,).

        Args:
            logits: (B, C) floating.
            labels: (B,), (B, L) integers, or (B, C) soft targets.

        Raises:
            ValueError: k, shapes or devices are off.
            IndexError: a label out of range.
            TypeError: logits or labels of the wrong type.
        """
        check_logits(logits)
        rows, classes = logits.shape
        if self.k > classes:
            raise ValueError(f"k: {self.k} found for {classes} classes, expected 1..{classes}")
        check_labels(labels, rows, classes, logits.device, self.ignore_index)
        if self.weight is not None and self.weight.device != logits.device:
            self.weight = self.weight.to(logits.device)
        check_class_weight("weight", self.weight, classes, logits.device)

        def losses(logits: Tensor, labels: Tensor, times: int) -> Tensor:
            return losses_of_candidates(logits, labels, classes, LEFT_OUT, self.label_losses)

        columns, shares = label_columns(labels, self.weight, self.ignore_index, classes)
        total = mixed_losses(logits, columns, shares, losses)
        return reduce_rows(total, row_weights(labels, self.weight, self.ignore_index, classes), self.reduction)

    def extra_repr(self) -> str:
        """The options."""
        return f"k={self.k}, reduction={self.reduction!r}, ignore_index={self.ignore_index}"

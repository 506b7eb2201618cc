"""Top-k hinge, top-k entropy and truncated top-k entropy.

Lapin, Hein, Schiele: Loss Functions for Top-k Error: Analysis and Insights (CVPR 2016), and Analysis and Optimization
of Loss Functions for Multiclass, Top-k, and Multilabel Classification (TPAMI 2017).
"""

from torch import Tensor

from ...core.arguments import named
from ..loss_options import HINGES
from ..option_checks import choice
from .objectives import topk_entropy, topk_hinge, truncated_topk_entropy
from .row_losses import RowLoss


class TopKHingeLoss(RowLoss):
    """Top-k hinge over a_j = s_j - s_y + [j is not y].

    Args:
        k: 1..C.
        variant: `alpha`, the positive part of the mean of the k highest a_j, or `beta`, the mean of their positive
            parts.
        weight: (C,) class weights.
        ignore_index: label that is left out.
        reduction: `mean`, `sum` or `none`.

    Raises:
        ValueError: an option outside its range.
    """

    @named
    def __init__(
        self,
        k: int = 5,
        variant: str = "alpha",
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(k, weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.variant = choice("variant", variant, HINGES)

    def label_losses(self, scores: Tensor) -> Tensor:
        """See `RowLoss.label_losses`."""
        return topk_hinge.hinge(scores, self.k, self.variant)[:, -1]

    def extra_repr(self) -> str:
        """The options."""
        return f"{super().extra_repr()}, variant={self.variant!r}"


class TopKEntropyLoss(RowLoss):
    """The conjugate of the softmax loss on the top-k simplex; k = 1 is cross-entropy."""

    def label_losses(self, scores: Tensor) -> Tensor:
        """See `RowLoss.label_losses`."""
        return topk_entropy.label_losses(scores, self.k)[:, -1]


class TruncatedTopKEntropyLoss(RowLoss):
    """Cross-entropy in which the k - 1 highest scores of other classes do not count; k = 1 is cross-entropy."""

    def label_losses(self, scores: Tensor) -> Tensor:
        """See `RowLoss.label_losses`."""
        return truncated_topk_entropy.label_losses(scores, self.k)[:, -1]

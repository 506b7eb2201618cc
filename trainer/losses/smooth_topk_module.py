"""The smooth top-k SVM (Berrada, Zisserman, Kumar: Smooth Loss Functions for Deep Top-k Classification, ICLR 2018)."""

import math

import torch
from torch import Tensor

from ...core.arguments import named
from ..option_checks import choice, number, positive
from .objectives.gaps import MASKED
from .objectives.smooth_topk import hard_loss, smooth_loss
from .row_losses import RowLoss

_HARD_RATIO = 1e3


class SmoothTopKLoss(RowLoss):
    """Smooth top-k SVM.

    Args:
        k: 1..C; with k = C there is no loss.
        tau: temperature of the smoothing, above 0. k = 1, tau = 1 and margin 0 is cross-entropy.
        margin: by how much k-sets with the label must score more, at least 0.
        mode: `smooth`; `hard` (tau -> 0); `mixed` takes the hard form where the k-th score leads the next by
            k tau log(1000), so that smoothing would change nothing.
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
        tau: float = 1.0,
        margin: float = 1.0,
        mode: str = "smooth",
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(k, weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.tau = positive("tau", tau)
        self.margin = number("margin", margin, "a finite number of at least 0", lambda x: 0 <= x < math.inf)
        self.mode = choice("mode", mode, ("smooth", "hard", "mixed"))

    def label_losses(self, scores: Tensor) -> Tensor:
        """See `RowLoss.label_losses`."""
        if self.mode == "hard":
            return hard_loss(scores, self.k, self.margin)
        smooth = smooth_loss(scores, self.k, self.tau, self.margin)
        if self.mode == "smooth" or self.k == scores.shape[1]:
            return smooth
        top = scores.detach().clamp_min(MASKED).topk(self.k + 1, dim=1).values
        far = top[:, self.k - 1] - top[:, self.k] >= self.k * self.tau * math.log(_HARD_RATIO)
        return torch.where(far, hard_loss(scores, self.k, self.margin), smooth)

    def extra_repr(self) -> str:
        """The options."""
        return f"{super().extra_repr()}, tau={self.tau}, margin={self.margin}, mode={self.mode!r}"

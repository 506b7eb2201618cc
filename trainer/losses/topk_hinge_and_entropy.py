"""Top-k hinge, top-k entropy and truncated top-k entropy.

Lapin, Hein, Schiele: Loss Functions for Top-k Error: Analysis and Insights (CVPR 2016), and Analysis and Optimization
of Loss Functions for Multiclass, Top-k, and Multilabel Classification (TPAMI 2017).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ...core.arguments import named
from ..option_checks import choice
from .row_losses import RowLoss, split_label


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
        self.variant = choice("variant", variant, ("alpha", "beta"))

    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""
        label = labels.unsqueeze(1)
        margins = (scores + 1).scatter(1, label, scores.gather(1, label)) - scores.gather(1, label)
        top = margins.topk(self.k, dim=1).values
        return top.mean(dim=1).clamp_min(0) if self.variant == "alpha" else top.clamp_min(0).mean(dim=1)

    def extra_repr(self) -> str:
        """The options."""
        return f"{super().extra_repr()}, variant={self.variant!r}"


class TopKEntropyLoss(RowLoss):
    """The conjugate of the softmax loss on the top-k simplex; k = 1 is cross-entropy.

    With a_j = s_j - s_y in descending order and A_u the sum of exp(a_j) over j > u, the u highest a_j are capped, u the
    least with exp(a_(u+1)) <= A_u / (k - u), and the loss is softplus(V) with
    V = (a_1 + ... + a_u) / k + (u / k) log k + (1 - u / k) log(A_u k / (k - u)).
    """

    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""
        k, others = self.k, scores.shape[1] - 1
        label, rest = split_label(scores, labels)
        if k > others:
            return scores.sum(dim=1) * 0
        gaps = rest.sort(dim=1, descending=True).values[:, :others] - label.unsqueeze(1)
        capped = torch.arange(k, dtype=gaps.dtype, device=gaps.device)
        tails = gaps.flip(1).logcumsumexp(dim=1).flip(1)[:, :k]
        fits = gaps[:, :k].detach() <= tails.detach() - (k - capped).log() + 1e-6
        first = fits.int().argmax(dim=1, keepdim=True)
        sums = gaps[:, :k].cumsum(dim=1) - gaps[:, :k]
        share = capped / k
        values = sums / k + share * math.log(k) + (1 - share) * (tails + math.log(k) - (k - capped).log())
        return softplus(values.gather(1, first).squeeze(1), threshold=80)


class TruncatedTopKEntropyLoss(RowLoss):
    """Cross-entropy in which the k - 1 highest scores of other classes do not count; k = 1 is cross-entropy."""

    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""
        others = scores.shape[1] - 1
        label, rest = split_label(scores, labels)
        if self.k > others:
            return scores.sum(dim=1) * 0
        counted = rest.sort(dim=1, descending=True).values[:, self.k - 1 : others]
        return softplus(counted.logsumexp(dim=1) - label, threshold=80)

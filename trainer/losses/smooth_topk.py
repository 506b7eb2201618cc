"""The smooth top-k SVM (Berrada, Zisserman, Kumar: Smooth Loss Functions for Deep Top-k Classification, ICLR 2018)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ...core.arguments import named
from ..option_checks import choice, number, positive
from .row_losses import RowLoss, split_label

_ZERO = -1e30
_HARD_RATIO = 1e3


def log_symmetric_sums(scores: Tensor, k: int) -> Tensor:
    """Logarithms of the elementary symmetric sums of exp(scores), by polynomial products in halves.

    Args:
        scores: (B, n) floating; -1e30 stands for a factor that is not there.
        k: highest degree.

    Returns:
        (B, k + 1), [b, j] the log-sum over all j-subsets of exp(sum of their scores); about -1e30 where there is none.
    """
    width = 1 << max(scores.shape[1] - 1, 0).bit_length()
    scores = pad(scores, (0, width - scores.shape[1]), value=_ZERO)
    polynomials = torch.stack([torch.zeros_like(scores), scores])
    while polynomials.shape[2] > 1:
        polynomials = _product(polynomials[..., 0::2], polynomials[..., 1::2], k)
    missing = k + 1 - len(polynomials)
    return pad(polynomials[:, :, 0].t(), (0, max(missing, 0)), value=_ZERO)[:, : k + 1]


def _product(a: Tensor, b: Tensor, k: int) -> Tensor:
    degrees = range(min(len(a) + len(b) - 1, k + 1))
    terms = [[(i, j - i) for i in range(len(a)) if 0 <= j - i < len(b)] for j in degrees]
    return torch.stack([torch.logsumexp(torch.stack([a[i] + b[j] for i, j in pairs]), dim=0) for pairs in terms])


def smooth_rows(scores: Tensor, labels: Tensor, k: int, tau: float, margin: float) -> Tensor:
    """The smooth loss of each row: tau softplus(margin / tau + log S_k - log S_(k-1) - s_y / (k tau))."""
    if k == scores.shape[1]:
        return scores.sum(dim=1) * 0
    label, others = split_label(scores / (k * tau), labels, _ZERO)
    highest = others.detach().amax(dim=1)
    others = others.sub(highest.unsqueeze(1)).clamp_min(_ZERO)
    sums = log_symmetric_sums(others, k)
    return tau * softplus(margin / tau + sums[:, k] - sums[:, k - 1] - (label - highest), threshold=80)


def hard_rows(scores: Tensor, labels: Tensor, k: int, margin: float) -> Tensor:
    """The hard loss of each row: k-sets without the label, plus a margin, against k-sets with it."""
    if k == scores.shape[1]:
        return scores.sum(dim=1) * 0
    label, others = split_label(scores, labels)
    top = others.topk(k, dim=1).values
    return ((top[:, -1] - label) / k + margin).clamp_min(0)


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

    def row_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Losses (B,) of rows for labels in range."""
        if self.mode == "hard":
            return hard_rows(scores, labels, self.k, self.margin)
        smooth = smooth_rows(scores, labels, self.k, self.tau, self.margin)
        if self.mode == "smooth" or self.k == scores.shape[1]:
            return smooth
        top = scores.detach().topk(self.k + 1, dim=1).values
        far = top[:, self.k - 1] - top[:, self.k] >= self.k * self.tau * math.log(_HARD_RATIO)
        return torch.where(far, hard_rows(scores, labels, self.k, self.margin), smooth)

    def extra_repr(self) -> str:
        """The options."""
        return f"{super().extra_repr()}, tau={self.tau}, margin={self.margin}, mode={self.mode!r}"

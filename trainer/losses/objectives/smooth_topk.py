"""The smooth top-k SVM (Berrada, Zisserman, Kumar: Smooth Loss Functions for Deep Top-k Classification, ICLR 2018).

tau log of the ratio of two sums over k-sets of classes, of exp((mean of their scores) / tau): over all sets, those
without the label with a margin of 1 on top, and over those with the label.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ...loss_options import LossOptions
from .gaps import MASKED


def label_losses(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Losses (B, k) for k' = 1..k."""
    tau = 1 / options.beta(scores.shape[1])
    return torch.stack([smooth_loss(scores, one, tau, margin=1.0) for one in range(1, k + 1)], dim=1)


def smooth_loss(scores: Tensor, k: int, tau: float, margin: float) -> Tensor:
    """The loss for one k, tau softplus(margin / tau + log S_k - log S_(k-1) - s_y / (k tau)), S_k of the others.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order.
        k: 1..m.
        tau: above 0.
        margin: at least 0.

    Returns:
        (B,) losses; 0 for k = m.
    """
    if k == scores.shape[1]:
        return scores[:, 0] * 0
    label, others = scores[:, 0] / (k * tau), (scores[:, 1:] / (k * tau)).clamp_min(MASKED)
    highest = others[:, 0].detach()
    sums = log_symmetric_sums(others.sub(highest.unsqueeze(1)).clamp_min(MASKED), k)
    return tau * softplus(margin / tau + sums[:, k] - sums[:, k - 1] - (label - highest), threshold=80)


def hard_loss(scores: Tensor, k: int, margin: float) -> Tensor:
    """The limit of `smooth_loss` for tau -> 0: k-sets without the label, plus a margin, against k-sets with it."""
    if k == scores.shape[1]:
        return scores[:, 0] * 0
    return ((scores[:, k].clamp_min(MASKED) - scores[:, 0]) / k + margin).clamp_min(0)


def log_symmetric_sums(scores: Tensor, k: int) -> Tensor:
    """Logarithms of the elementary symmetric sums of exp(scores), by polynomial products in halves.

    Args:
        scores: (B, n) floating; -1e30 stands for a factor that is not there.
        k: highest degree.

    Returns:
        (B, k + 1), [b, j] the log-sum over all j-subsets of exp(sum of their scores); about -1e30 where there is none.
    """
    width = 1 << max(scores.shape[1] - 1, 0).bit_length()
    scores = pad(scores, (0, width - scores.shape[1]), value=MASKED)
    polynomials = torch.stack([torch.zeros_like(scores), scores])
    while polynomials.shape[2] > 1:
        polynomials = _product(polynomials[..., 0::2], polynomials[..., 1::2], k)
    missing = k + 1 - len(polynomials)
    return pad(polynomials[:, :, 0].t(), (0, max(missing, 0)), value=MASKED)[:, : k + 1]


def _product(a: Tensor, b: Tensor, k: int) -> Tensor:
    degrees = range(min(len(a) + len(b) - 1, k + 1))
    terms = [[(i, j - i) for i in range(len(a)) if 0 <= j - i < len(b)] for j in degrees]
    return torch.stack([torch.logsumexp(torch.stack([a[i] + b[j] for i, j in pairs]), dim=0) for pairs in terms])

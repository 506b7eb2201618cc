"""Sparse top-k (Sander, Puigcerver, Djolonga, Peyre, Blondel: Fast, Differentiable and Sparse Top-k, ICML 2023).

Their relaxed mask of the top k with the 2-norm is the projection of s / lambda onto the capped simplex, 0 <= p <= 1
with sum k: p = clip(s / lambda - tau, 0, 1). Most of it is 0, and a label that is not in it would have log 0. The mask
is the gradient of f(s), the highest <s, p> - lambda / 2 |p|^2, so that the loss is of the Fenchel-Young kind (Blondel,
Martins, Niculae, 2020): f(s) less the same maximum over the masks that hold the label wholly. It is convex, 0 where the
mask holds the label, and its gradient is the difference of two masks; for k = 1 it is the sparsemax loss.
"""

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..relaxations.masked import finite_count
from ..second_derivatives import without_second_derivatives


def label_losses(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The Fenchel-Young losses (B, k) for k' = 1..k, in units of the scores."""
    finite, count = finite_count(scores)
    every = torch.arange(1, k + 1, device=scores.device) >= count
    beta = options.beta(scores.shape[-1])
    constant = scores.detach()
    mask = capped_simplex(constant * beta, k)
    with_label = torch.ones_like(mask)
    with_label[:, :1, 1:] = 0
    if k > 1:
        with_label = torch.cat([with_label[:, :1], _with_label(constant * beta, k)], 1)
    difference = (mask - with_label).where(~every.unsqueeze(-1), 0.0).where(finite.unsqueeze(1), 0.0)
    # Both masks have the sum k', so that scores may be counted from the label's.
    gaps = (scores - scores[:, :1]).where(finite, 0.0)
    penalty = 0.5 / beta * (difference * (mask + with_label)).sum(-1)
    return without_second_derivatives((difference * gaps.unsqueeze(1)).sum(-1) - penalty)


def _with_label(scaled: Tensor, k: int) -> Tensor:
    """The masks of the top 2..k, (B, k - 1, m), among those that hold the label wholly."""
    others = capped_simplex(scaled[:, 1:], k - 1)
    return torch.cat([torch.ones_like(others[..., :1]), others], -1)


def capped_simplex(scores: Tensor, k: int) -> Tensor:
    """The nearest points of 0 <= p <= 1 with sum k', (B, k, n) for k' = 1..k; not told where no k' scores are finite.

    tau lies within 1 below the k'-th highest score. As it falls from there by t, each score enters the slope of the sum
    at one t or leaves it at one, so that a sort of these gives t.
    """
    ks = torch.arange(1, k + 1, device=scores.device).unsqueeze(-1)
    kth = scores.topk(k, dim=-1).values.unsqueeze(-1)
    above = (scores.unsqueeze(1) - kth.where(kth != -torch.inf, 0.0)).clamp(-1, 1)
    growing = above >= 0
    turns, order = torch.where(growing, 1 - above, -above).sort(dim=-1)
    steps = torch.where(growing, -1, 1).gather(-1, order).cumsum(-1)
    slopes = torch.nn.functional.pad(steps, (1, 0)) + growing.sum(-1, keepdim=True)
    turns = torch.nn.functional.pad(turns, (1, 0))
    grown = (slopes[..., :-1] * turns.diff(dim=-1)).cumsum(-1)
    sums = torch.nn.functional.pad(grown, (1, 0)) + above.clamp_min(0).sum(-1, keepdim=True)
    last = ((sums <= ks).sum(-1, keepdim=True) - 1).clamp_min(0)
    lack = (ks - sums.gather(-1, last)) / slopes.gather(-1, last).clamp_min(1)
    return (above + (turns.gather(-1, last) + lack).clamp(0, 1)).clamp(0, 1)

"""Soft ranks (Blondel, Teboul, Berthet, Djolonga: Fast Differentiable Sorting and Ranking, ICML 2020).

The ranks of scores s are the projection of -s / epsilon onto the permutahedron of (1, ..., n), with the Euclidean
regularisation. What a rank says of the top k is chosen here: -log of the membership is the hinge max(0, r - k), so that
a label within the k best costs nothing, and each rank beyond costs one more.
"""

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..relaxations.masked import finite_count


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of the label's membership in the top k', (B, k) for k' = 1..k.

    A label whose neighbours are further than epsilon away has a hard rank, which has no gradient.
    """
    ks = torch.arange(1, k + 1, device=scores.device)
    every = ks >= finite_count(scores)[1]
    beyond = label_soft_rank(scores * options.beta(scores.shape[-1])).unsqueeze(-1) - ks
    return -beyond.where(~every, 0.0).clamp_min(0)


def label_soft_rank(scores: Tensor) -> Tensor:
    """The soft rank (B,) of the first score, from 1 for the highest; epsilon is 1, the other scores are in order.

    Isotonic regression gives each rank the mean of its block, which is the highest over its beginnings of the lowest
    mean over its ends: O(m^2) at once. Sums start at the label, so that distant scores take no digits from near ones.
    """
    others, label = scores[:, 1:], scores[:, :1]
    finite = others != -torch.inf
    above = others > label
    position = above.sum(-1, keepdim=True)
    places = torch.arange(1, scores.shape[-1], device=scores.device)
    gaps = (label - others).where(finite, 0.0) - (places + ~above)
    nothing = torch.zeros_like(label)
    upwards = torch.cat([gaps.where(above, 0.0).flip(-1).cumsum(-1).flip(-1), nothing], -1)
    downwards = torch.cat([nothing, gaps.where(~above, 0.0).cumsum(-1)], -1)
    ends = torch.arange(scores.shape[-1], device=scores.device)
    sums = upwards.unsqueeze(-1) + downwards.unsqueeze(-2) - (position + 1).unsqueeze(-1)
    sizes = 1 + (position - ends).clamp_min(0).unsqueeze(-1) + (ends - position).clamp_min(0).unsqueeze(-2)
    real = torch.cat([torch.ones_like(finite[:, :1]), finite], -1) if scores.shape[-1] > 1 else ends.unsqueeze(0) == 0
    means = (sums / sizes).where(real.unsqueeze(-2), torch.inf)
    return -means.amin(-1).amax(-1)

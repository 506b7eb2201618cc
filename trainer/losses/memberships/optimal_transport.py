"""SOFT top-k (Xie et al.: Differentiable Top-k with Optimal Transport, NeurIPS 2020).

The scores, each of mass 1 / n, are moved to the points 0 and 1, of masses (n - k) / n and k / n, at squared distance
and with entropic regularisation epsilon. The share of a score that arrives at 1 is its membership. With two points the
plan has one free potential t: the membership is sigmoid((2 s - t) / epsilon), and t makes the memberships add up to k.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ...loss_options import LossOptions
from ..relaxations.masked import finite_count
from ..second_derivatives import without_second_derivatives


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of the label's membership in the top k', (B, k) for k' = 1..k.

    The authors divide the costs of a batch by their highest; here epsilon is in units of squared scores. The gradient
    through t is that of the implicit function theorem, the authors' too.
    """
    finite, count = finite_count(scores)
    every = torch.arange(1, k + 1, device=scores.device) >= count
    scaled = scores * (2 * options.beta(scores.shape[-1]))
    constant = scaled.detach()
    potential = _potential(constant, k, count, options).where(~every, 0.0)
    inside = constant.unsqueeze(1) - potential.unsqueeze(-1)
    share = (logsigmoid(inside) + logsigmoid(-inside)).where(finite.unsqueeze(1), -torch.inf).softmax(-1)
    moved = share * (scaled - constant).where(finite, 0.0).unsqueeze(1)
    label = (scaled[:, :1] - (potential + moved.sum(-1))).where(~every, 0.0)
    return without_second_derivatives(logsigmoid(label).where(~every, 0.0))


def _potential(scaled: Tensor, k: int, count: Tensor, options: LossOptions) -> Tensor:
    """T (B, k) for each k' = 1..k, epsilon being 1.

    Sinkhorn's iterations with Newton's steps: what the k' highest scores lack in all must be what the others have, and
    the difference of the logarithms of both is nearly linear in t.
    """
    ordered = scaled.sort(dim=-1, descending=True).values
    ranks = torch.arange(1, ordered.shape[-1] + 1, device=scaled.device)
    ks = ranks[:k]
    first = ordered[:, :k]
    following = torch.cat([ordered[:, 1 : k + 1], ordered[:, -1:]], -1)[:, :k]
    following = torch.where(ks < count, following, first)
    lowest = following - ks.to(scaled).log()
    highest = first + (count - ks).clamp_min(1).log()
    potential = (first + following) / 2
    inside = ranks <= ks.unsqueeze(-1)
    ordered = ordered.unsqueeze(1)
    for _ in range(options.sinkhorn_iterations):
        above = ordered - potential.unsqueeze(-1)
        lack = logsigmoid(-above).where(inside, -torch.inf)
        have = logsigmoid(above).where(~inside, -torch.inf)
        both = torch.stack([lack, have], -2)
        sums = both.logsumexp(-1)
        slope = (both - sums.unsqueeze(-1)).exp()
        slope = (slope[..., 0, :] * above.sigmoid()).sum(-1) + (slope[..., 1, :] * (-above).sigmoid()).sum(-1)
        new = (potential + (sums[..., 1] - sums[..., 0]) / slope).clamp(lowest, highest)
        moving = (new - potential).abs() > options.sinkhorn_tolerance
        potential = torch.where(moving, new, potential)
    return potential

"""LapSum (Struski, Bednarczyk, Podolak, Tabor: LapSum - One Method to Differentiate Them All, ICML 2025).

The membership of a score s is F((s - b) / alpha), F the CDF of Laplace's distribution, and b such that the memberships
of a row add up to k.
"""

import math

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..relaxations.masked import finite_count
from ..second_derivatives import without_second_derivatives


def label_log_memberships(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of the label's membership in the top k', (B, k) for k' = 1..k."""
    finite, count = finite_count(scores)
    scaled = scores * options.beta(scores.shape[-1])
    every = torch.arange(1, k + 1, device=scores.device) >= count
    threshold = _threshold(scaled.detach(), finite, k).where(~every, 0.0)
    # b follows the scores by the implicit function theorem: db / ds_j is the share of F'(s_j - b) in their sum.
    nearness = -(scaled.detach().unsqueeze(1) - threshold.unsqueeze(-1)).abs()
    moved = nearness.softmax(-1) * (scaled - scaled.detach()).where(finite, 0.0).unsqueeze(1)
    inside = scaled[:, :1] - (threshold + moved.sum(-1))
    log_p = log_laplace_cdf(inside.where(~every, 0.0)).where(~every, 0.0)
    return without_second_derivatives(log_p)


def log_laplace_cdf(x: Tensor) -> Tensor:
    """Log F(x): x - log 2 up to 0, then log(1 - exp(-x) / 2)."""
    high = x > 0
    return torch.where(high, torch.log1p(-0.5 * (-x.where(high, 0.0)).exp()), x.where(~high, 0.0) - math.log(2))


def _threshold(scores: Tensor, finite: Tensor, k: int) -> Tensor:
    """B (B, k) for each k' = 1..k, alpha being 1.

    Where i scores lie above b, its exponential t solves A t^2 + 2 (k' - i) t = B, with A the sum of exp(-s) over those
    above and B that of exp(s) over those below. A B is at most i (n - i), so that the logarithms of A and B suffice.
    """
    ordered, order = scores.sort(dim=-1, descending=True)
    kept = finite.gather(-1, order)
    above = (-ordered).where(kept, -torch.inf).logcumsumexp(-1)
    below = ordered.flip(-1).logcumsumexp(-1).flip(-1)
    nothing = torch.full_like(above[:, :1], -torch.inf)
    above, below = torch.cat([nothing, above], -1), torch.cat([below, nothing], -1)
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    # The sum of memberships if b were the i-th score: the number of scores for which it is at most k' is i.
    sums = rank - 0.5 * (above[:, 1:] + ordered).exp() + 0.5 * (below[:, 1:] - ordered).exp()
    ks = torch.arange(1, k + 1, device=scores.device).to(scores).unsqueeze(-1)
    taken = (sums.unsqueeze(1) <= ks).logical_and(kept.unsqueeze(1)).sum(-1)
    log_a, log_b = above.gather(-1, taken), below.gather(-1, taken)
    surplus = taken.to(scores) - ks.squeeze(-1)
    product = log_a + log_b
    log_root = torch.log(surplus.abs() + torch.sqrt(surplus.square() + product.exp()))
    log_root = log_root.where(surplus != 0, 0.5 * product)  # where far scores leave nothing of the product
    return torch.where(surplus >= 0, log_root - log_a, log_b - log_root)

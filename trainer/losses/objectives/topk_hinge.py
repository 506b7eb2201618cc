"""Top-k hinge (Lapin, Hein, Schiele: Loss Functions for Top-k Error: Analysis and Insights, CVPR 2016).

Over a_j = s_j - s_y + [j is not y], the k highest: `alpha` is the positive part of their mean (equation 5), `beta` the
mean of their positive parts (equation 6).
"""

import torch
from torch import Tensor

from ...loss_options import LossOptions
from .gaps import label_gaps, up_to


def label_losses(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Losses (B, k) for k' = 1..k."""
    return hinge(scores, k, options.hinge)


def hinge(scores: Tensor, k: int, variant: str) -> Tensor:
    """Losses (B, k) of candidates (B, m) for k' = 1..k; `variant` is `alpha` or `beta`."""
    gaps = label_gaps(scores)
    top = torch.cat([torch.zeros_like(scores[:, :1]), gaps + 1], dim=1).topk(k, dim=1).values
    if variant == "beta":
        top = top.clamp_min(0)
    return (top.cumsum(dim=1) / up_to(k, top)).clamp_min(0)

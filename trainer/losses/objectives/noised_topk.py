"""Noised top-k losses, balanced and imbalanced.

Garcin, Servajean, Joly, Salmon: Stochastic Smoothing of the Top-K Calibrated Hinge Loss for Deep Imbalanced
Classification, ICML 2022. max(0, margin + E[(s + epsilon Z)_[k+1]] - s_y): the top-k calibrated hinge, its (k+1)-th
highest score smoothed by Gaussian noise Z, so that the k + 1 highest scores have a slope. The margin is 1, or that of
the label's class, `max_margin` (n_min / n_y)^(1/4) for classes with n rows of training. The mean is over `samples`
draws, which belong to `noise_seed` and to the rank of a candidate and are the same in every call.
"""

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..noise import normal_draws
from .gaps import filled, label_gaps


def label_losses(scores: Tensor, k: int, options: LossOptions, margins: Tensor | None = None) -> Tensor:
    """Losses (B, k) for k' = 1..k; `margins` (B,) are those of the labels' classes, None is 1 for all."""
    size = scores.shape[1]
    noise = normal_draws(options.noise_seed, options.samples, size, scores.device).to(scores) / options.beta(size)
    gaps = torch.cat([torch.zeros_like(scores[:, :1]), label_gaps(scores)], dim=1)
    highest = (gaps.unsqueeze(1) + noise).topk(min(k + 1, size), dim=2).values
    margin = 1.0 if margins is None else margins.to(scores).unsqueeze(1)
    return filled((margin + highest[:, :, 1:].mean(dim=1)).clamp_min(0), k)


def class_margins(counts: Tensor, largest: float) -> Tensor:
    """The margin of each class, (C,) for counts (C,): `largest` for the rarest; a class without rows counts as one."""
    counts = counts.clamp_min(1).double()
    return largest * (counts.min() / counts) ** 0.25

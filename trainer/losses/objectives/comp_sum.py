"""Comp-sum losses (Mao, Mohri, Zhong: Cross-Entropy Loss Functions, ICML 2023): functions of the label's softmax p.

(1 - p^q) / q, q being tau - 1 there: the sum-exponential loss at q = -1, cross-entropy at 0, generalised cross-entropy
(Zhang, Sabuncu, NeurIPS 2018) between, and the mean absolute error at 1. All are consistent for the top-k error of
every k (Cortes et al., NeurIPS 2024) and know no k.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ...loss_options import LossOptions
from .gaps import label_gaps

# Where p^q is above exp(10), its tangent goes on, so that 16 bits hold the gradient.
_STEEP = 10.0


def label_losses(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Losses (B, k), the same for every k."""
    q, cost = options.comp_sum_q, cross_entropy(scores)
    if q == 0:
        return cost.expand(-1, k)
    exponent = -q * cost
    steep = exponent.clamp_max(_STEEP)
    return (-(torch.expm1(steep) + math.exp(_STEEP) * (exponent - steep)) / q).expand(-1, k)


def cross_entropy(scores: Tensor) -> Tensor:
    """-log p (B, 1) of candidates (B, m), the label's score first."""
    return softplus(label_gaps(scores).logsumexp(dim=1, keepdim=True), threshold=80)

"""NeuralSort.

Grover, Wang, Zweig, Ermon: Stochastic Optimization of Sorting Networks via Continuous Relaxations, ICLR 2019.
"""

from typing import Any

import torch
from torch import Tensor

from ...loss_options import LossOptions
from .masked import below, finite_count

_FEW = 32


class _AbsoluteDeviations(torch.autograd.Function):
    """sum over l of |s_j - s_l| in O(m log m), with the symmetric subgradient at ties."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        ascending, order = scores.sort(dim=-1)
        below = torch.searchsorted(ascending, scores.contiguous())
        above = scores.shape[-1] - torch.searchsorted(ascending, scores.contiguous(), right=True)
        ctx.save_for_backward(order, below, above)
        sums = _prefix_sums(ascending)
        low = sums.gather(-1, below)
        high = sums[..., -1:] - sums.gather(-1, scores.shape[-1] - above)
        return (below - above) * scores - low + high

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        order, below, above = ctx.saved_tensors
        sums = _prefix_sums(grad.gather(-1, order))
        low = sums.gather(-1, below)
        high = sums[..., -1:] - sums.gather(-1, grad.shape[-1] - above)
        gradient: Tensor = (below - above) * grad + low - high
        return gradient


def _prefix_sums(values: Tensor) -> Tensor:
    return torch.nn.functional.pad(values.cumsum(-1), (1, 0))


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    return neuralsort_logits(scores, k, options.beta(scores.shape[-1])).log_softmax(-1)


def neuralsort_logits(scores: Tensor, k: int, inverse_temperature: float) -> Tensor:
    """Logits of the first k rows of P.

    Args:
        scores: (B, m) floating.
        k: number of rows, 1..m.
        inverse_temperature: 1 / tau.

    Returns:
        (B, k, m); the softmax over the last axis is P, up to the rank of the last score that is not masked.
    """
    finite, count = finite_count(scores)
    lowest = below(scores, finite, 1.0)
    scores = scores.where(finite, lowest)
    if scores.shape[-1] <= _FEW:
        deviations = (scores.unsqueeze(-1) - scores.unsqueeze(-2)).abs().sum(dim=-1)
    else:
        deviations = _AbsoluteDeviations.apply(scores)
    deviations = deviations - (scores.shape[-1] - count) * (scores - lowest)
    scaling = count - 1 - 2 * torch.arange(k, dtype=scores.dtype, device=scores.device)
    logits = (scaling.unsqueeze(-1) * scores.unsqueeze(-2) - deviations.unsqueeze(-2)) * inverse_temperature
    return logits.where(finite.unsqueeze(-2), -torch.inf)

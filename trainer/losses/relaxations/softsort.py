"""SoftSort (Prillo, Eisenschlos: SoftSort: A Continuous Relaxation for the argsort Operator, 2020)."""

import torch
from torch import Tensor

from ...loss_options import LossOptions
from .masked import below, finite_count


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    return softsort_logits(scores, k, options.beta(scores.shape[-1]), options.softsort_power).log_softmax(-1)


def softsort_logits(scores: Tensor, k: int, inverse_temperature: float, power: float) -> Tensor:
    """Logits of the first k rows of P.

    Args:
        scores: (B, m) floating.
        k: number of rows, 1..m.
        inverse_temperature: 1 / tau.
        power: exponent of the distance, above 0.

    Returns:
        (B, k, m); the softmax over the last axis is P, up to the rank of the last score that is not masked.
    """
    finite, _ = finite_count(scores)
    scores = scores.where(finite, below(scores, finite, 1.0))
    distance = (scores.topk(k, dim=-1).values.unsqueeze(-1) - scores.unsqueeze(-2)).abs()
    if power != 1:
        distance = distance.clamp_min(1e-12).pow(power)
    return (distance * -inverse_temperature).where(finite.unsqueeze(-2), -torch.inf)

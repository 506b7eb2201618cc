"""Soft swaps: the distributions whose CDF decides how much a comparator swaps.

f is the CDF at v = inverse temperature times the difference of the two scores. Every f is symmetric, f(-v) = 1 - f(v), so
that both log f(v) and log f(-v) come from one function without ever subtracting from 1.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

ART_RADIUS = 1e-4


def _log_cauchy(v: Tensor) -> Tensor:
    return (torch.atan2(torch.ones_like(v), -v) / math.pi).log()


def _log_reciprocal(v: Tensor) -> Tensor:
    high = v.clamp_min(0)
    return torch.where(v >= 0, high.log1p() - (2 + high).log(), -(2 - v.clamp_max(0)).log())


def _log_optimal(v: Tensor) -> Tensor:
    tail = 1 / (16 * v.abs().clamp_min(0.25))
    outer = torch.where(v < 0, tail.log(), (-tail).log1p())
    return torch.where(v.abs() > 0.25, outer, (0.5 + v.clamp(-0.25, 0.25)).log())


_LOG_CDF: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": logsigmoid,
    "logistic_phi": logsigmoid,
    "cauchy": _log_cauchy,
    "gaussian": torch.special.log_ndtr,
    "reciprocal": _log_reciprocal,
    "optimal": _log_optimal,
}


def activation_replacement(difference: Tensor, art_lambda: float) -> Tensor:
    """The difference d becomes d / |d|^lambda (Petersen et al.: Differentiable Sorting Networks, 2021).

    Its slope at 0 is infinite; within `ART_RADIUS` of 0 a cubic with the same value and slope at the radius takes over, so
    that equal scores have a bounded gradient.
    """
    size = difference.abs()
    inside = 1 - (size / ART_RADIUS).clamp_max(1).square()
    return difference * size.clamp_min(ART_RADIUS).pow(-art_lambda) * (1 + art_lambda / 2 * inside)


def log_cdf(distribution: str, v: Tensor) -> Tensor:
    """Logarithm of f(v), finite for every finite v."""
    return _LOG_CDF[distribution](v)


def steepened(difference: Tensor, distribution: str, inverse_temperature: float, art_lambda: float) -> Tensor:
    """The argument v of the CDF for a difference of scores."""
    if distribution == "logistic_phi":
        difference = activation_replacement(difference, art_lambda)
    return difference * inverse_temperature

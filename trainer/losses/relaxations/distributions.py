"""Soft swaps: the distributions whose CDF decides how much a comparator swaps.

f is the CDF at v = inverse temperature times the difference of the two scores. Every f is symmetric, f(-v) = 1 - f(v),
so that both log f(v) and log f(-v) come from one function without ever subtracting from 1. Branches are cut with
`where`, because `clamp` has no derivative at its bound in some releases of torch, and equal scores are at such a bound.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

ART_RADIUS, ART_SLOPE = 1e-4, 10.0
LEAST_LOG = -87.0
_GAUSSIAN_REACH = 1e9


def _log_cauchy(v: Tensor) -> Tensor:
    return (torch.atan2(torch.ones_like(v), -v) / math.pi).log()


def _log_reciprocal(v: Tensor) -> Tensor:
    high, low = v.where(v >= 0, 0), v.where(~(v >= 0), 0)
    return torch.where(v >= 0, high.log1p() - (2 + high).log(), -(2 - low).log())


def _log_optimal(v: Tensor) -> Tensor:
    inner = v.abs() <= 0.25
    tail = 1 / (16 * v.abs().where(~inner, 0.25))
    outer = torch.where(v < 0, tail.log(), (-tail).log1p())
    return torch.where(inner, (0.5 + v.where(inner, 0)).log(), outer)


def _log_gaussian(v: Tensor) -> Tensor:
    """`torch.special.log_ndtr`, whose own derivative loses its digits below -100 in float32."""
    v = v.clamp(-_GAUSSIAN_REACH, _GAUSSIAN_REACH)
    high, low = v.where(v >= 0, 0), v.where(~(v >= 0), 0)
    below = (torch.special.erfcx(low * -math.sqrt(0.5)) / 2).log() - low.square() / 2
    return torch.where(v >= 0, (-torch.erfc(high * math.sqrt(0.5)) / 2).log1p(), below)


_LOG_CDF: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": logsigmoid,
    "logistic_phi": logsigmoid,
    "cauchy": _log_cauchy,
    "gaussian": _log_gaussian,
    "reciprocal": _log_reciprocal,
    "optimal": _log_optimal,
}


def _logistic_slopes(v: Tensor, keep: Tensor, swap: Tensor) -> tuple[Tensor, Tensor]:
    return swap, keep


def _gaussian_slopes(v: Tensor, keep: Tensor, swap: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.special.erfcx(v.abs() * math.sqrt(0.5)).reciprocal_().mul_(math.sqrt(2 / math.pi))
    high = (v.square() * -0.5).exp_().div_(torch.maximum(keep, swap)).mul_(1 / math.sqrt(2 * math.pi))
    return torch.where(v < 0, low, high), torch.where(v < 0, high, low)


def _slopes_from(density: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    def slopes(v: Tensor, keep: Tensor, swap: Tensor) -> tuple[Tensor, Tensor]:
        pdf = density(v)
        return pdf / keep, pdf / swap

    return slopes


_SLOPES: dict[str, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "logistic": _logistic_slopes,
    "logistic_phi": _logistic_slopes,
    "cauchy": _slopes_from(lambda v: 1 / (math.pi * (1 + v.square()))),
    "gaussian": _gaussian_slopes,
    "reciprocal": _slopes_from(lambda v: 1 / (2 + v.abs()).square()),
    "optimal": _slopes_from(lambda v: (0.0625 / v.square().clamp_min(0.0625)).clamp_max(1)),
}


def log_cdf(distribution: str, v: Tensor) -> Tensor:
    """Logarithm of f(v), finite for every finite v."""
    return _LOG_CDF[distribution](v)


def log_cdf_pair(distribution: str, v: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of f(v) and f(-v), not to be differentiated."""
    if not distribution.startswith("logistic"):
        return log_cdf(distribution, v), log_cdf(distribution, -v)
    keep = v.clamp_max(0).add_(v.abs().sigmoid_().log_())
    return keep, keep - v


def probability(log: Tensor) -> Tensor:
    """`log.exp()`, but 0 below 2e-38, where `exp` takes 40 times as long on a CPU."""
    return torch.threshold_(log.clamp_min(LEAST_LOG).exp_(), 2e-38, 0.0)


def log_cdf_slopes(distribution: str, v: Tensor, keep: Tensor, swap: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes of log f at v and at -v, given f(v) and f(-v)."""
    return _SLOPES[distribution](v, keep, swap)


def steepened(
    difference: Tensor, distribution: str, inverse_temperature: float, art_lambda: float
) -> tuple[Tensor, Tensor | float]:
    """The argument v of the CDF for a difference of scores, and the slope of v by the difference.

    The activation replacement trick (Petersen et al.: Differentiable Sorting Networks, 2021) makes of the difference d
    d / |d|^lambda, whose slope at 0 is infinite. Within `ART_RADIUS` of 0 a cubic with the same value and slope at the
    radius takes its place, and the slope that the gradient takes is at most `ART_SLOPE`: equal scores, those of a head
    of zeros among them, would outweigh all other rows.
    """
    if distribution != "logistic_phi":
        return difference * inverse_temperature, inverse_temperature
    size = difference.abs()
    scale = size.clamp_min(ART_RADIUS).pow_(-art_lambda).mul_(inverse_temperature)
    inside = size.div_(ART_RADIUS).clamp_max_(1).square_().neg_().add_(1).mul_(art_lambda / 2)
    slope = (inside * 3).add_(1 - art_lambda).mul_(scale).clamp_max_(ART_SLOPE * inverse_temperature)
    return inside.add_(1).mul_(scale).mul_(difference), slope

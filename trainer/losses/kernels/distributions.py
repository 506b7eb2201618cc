"""Soft swaps in the log domain: f(v) in base-2 logarithms, and d ln f(v) / dv, for each distribution."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import LOG2_E, log2

ART_RADIUS, ART_SLOPE = tl.constexpr(1e-4), tl.constexpr(10.0)


@triton.jit
def steepen(difference, beta, art_lambda, ART: tl.constexpr):
    """The argument v of the CDF, and dv / d difference, bounded as in plain torch."""
    if ART:
        size = tl.abs(difference)
        scale = beta * tl.exp2(-art_lambda * log2(tl.maximum(size, ART_RADIUS)))
        ratio = tl.minimum(size * (1 / ART_RADIUS), 1.0)
        inside = art_lambda / 2 * (1 - ratio * ratio)
        slope = tl.where(size < ART_RADIUS, 1 - art_lambda + 3 * inside, 1 - art_lambda)
        return difference * scale * (1 + inside), tl.minimum(scale * slope, beta * ART_SLOPE)
    else:
        return difference * beta, beta


@triton.jit
def _arc(v):
    """The angle of (-v, 1), pi times the Cauchy CDF, precise in both tails (Abramowitz and Stegun 4.4.49)."""
    size = tl.abs(v)
    t = tl.where(size > 1, 1 / tl.maximum(size, 1.0), size)
    s = t * t
    p = 0.0028662257 * s - 0.0161657367
    p = p * s + 0.0429096138
    p = p * s - 0.0752896400
    p = p * s + 0.1065626393
    p = p * s - 0.1420889944
    p = p * s + 0.1999355085
    p = p * s - 0.3333314528
    arc = t + t * s * p
    low = tl.where(size > 1, arc, 1.5707963267948966 - arc)
    return tl.where(v < 0, low, 3.141592653589793 - low)


@triton.jit
def _log2_scaled_erfc(z):
    """log2(erfc(z) exp(z * z)) for z >= 0 (the Chebyshev fit of Numerical Recipes, relative error 1.2e-7)."""
    t = 1 / (1 + 0.5 * z)
    p = 0.17087277 * t - 0.82215223
    p = p * t + 1.48851587
    p = p * t - 1.13520398
    p = p * t + 0.27886807
    p = p * t - 0.18628806
    p = p * t + 0.09678418
    p = p * t + 0.37409196
    p = p * t + 1.00002368
    return log2(t) + (t * p - 1.26551223) * LOG2_E


@triton.jit
def log2_cdf_pair(v, DISTRIBUTION: tl.constexpr):
    """log2 f(v) and log2 f(-v)."""
    size = tl.abs(v)
    if DISTRIBUTION == "cauchy":
        arc = _arc(-size)
        low = log2(arc * 0.3183098861837907)
        high = log2(1 - arc * 0.3183098861837907)
    elif DISTRIBUTION == "reciprocal":
        low = -log2(2 + size)
        high = low + log2(1 + size)
    elif DISTRIBUTION == "optimal":
        tail = tl.where(size > 0.25, 0.0625 / tl.maximum(size, 0.25), 0.5 - size)
        low = log2(tail)
        high = log2(1 - tail)
    elif DISTRIBUTION == "gaussian":
        z = size * 0.7071067811865476
        low = _log2_scaled_erfc(z) - z * z * LOG2_E - 1
        high = log2(1 - tl.exp2(low))
    else:
        high = -log2(1 + tl.exp2(-size * LOG2_E))
        low = high - size * LOG2_E
    return tl.where(v < 0, low, high), tl.where(v < 0, high, low)


@triton.jit
def _density(size, DISTRIBUTION: tl.constexpr):
    if DISTRIBUTION == "cauchy":
        return 0.3183098861837907 / (1 + size * size)
    elif DISTRIBUTION == "reciprocal":
        return 1 / ((2 + size) * (2 + size))
    else:
        return tl.where(size > 0.25, 0.0625 / tl.maximum(size * size, 0.0625), 1.0)


@triton.jit
def log_cdf_slopes(v, keep, swap, DISTRIBUTION: tl.constexpr):
    """Slopes d ln f(v) / dv and d ln f(-v) / d(-v), given f(v) and f(-v)."""
    if DISTRIBUTION == "gaussian":
        log2_scaled = _log2_scaled_erfc(tl.abs(v) * 0.7071067811865476)
        low = tl.exp2(-0.3257480647361593 - log2_scaled)
        half_square = v * v * (0.5 * LOG2_E)
        high = 0.3989422804014327 * tl.exp2(-half_square) / (1 - 0.5 * tl.exp2(log2_scaled - half_square))
        return tl.where(v < 0, low, high), tl.where(v < 0, high, low)
    elif DISTRIBUTION == "logistic" or DISTRIBUTION == "logistic_phi":
        return swap, keep
    else:
        density = _density(tl.abs(v), DISTRIBUTION)
        return density / keep, density / swap

"""Soft swaps in the log domain: log f(v), and d log f(v) / dv, for each distribution."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

ART_RADIUS = tl.constexpr(1e-4)


@triton.jit
def steepen(difference, beta, art_lambda, ART: tl.constexpr):
    """The argument v of the CDF, and dv / d difference."""
    if ART:
        size = tl.abs(difference)
        scale = beta * tl.exp(-art_lambda * tl.log(tl.maximum(size, ART_RADIUS)))
        inside = size < ART_RADIUS
        ratio = tl.where(inside, size / ART_RADIUS, 1.0)
        v = difference * scale * (1 + art_lambda / 2 * (1 - ratio * ratio))
        slope = scale * tl.where(inside, 1 + art_lambda / 2 - 1.5 * art_lambda * ratio * ratio, 1 - art_lambda)
        return v, slope
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
def _log_scaled_erfc(z):
    """log(erfc(z) exp(z * z)) for z >= 0 (the Chebyshev fit of Numerical Recipes, relative error 1.2e-7)."""
    t = 1 / (1 + 0.5 * z)
    p = 0.17087277 * t - 0.82215223
    p = p * t + 1.48851587
    p = p * t - 1.13520398
    p = p * t + 0.27886807
    p = p * t - 0.18628806
    p = p * t + 0.09678418
    p = p * t + 0.37409196
    p = p * t + 1.00002368
    return tl.log(t) - 1.26551223 + t * p


@triton.jit
def log_cdf(v, DISTRIBUTION: tl.constexpr):
    """log f(v)."""
    if DISTRIBUTION == "cauchy":
        return tl.log(_arc(v) * 0.3183098861837907)
    elif DISTRIBUTION == "reciprocal":
        size = tl.abs(v)
        return tl.where(v >= 0, tl.log(1 + size), 0.0) - tl.log(2 + size)
    elif DISTRIBUTION == "optimal":
        tail = 0.0625 / tl.maximum(tl.abs(v), 0.25)
        middle = 0.5 + tl.minimum(tl.maximum(v, -0.25), 0.25)
        return tl.log(tl.where(v < -0.25, tail, tl.where(v > 0.25, 1 - tail, middle)))
    elif DISTRIBUTION == "gaussian":
        z = tl.abs(v) * 0.7071067811865476
        log_tail = _log_scaled_erfc(z) - z * z - 0.6931471805599453
        return tl.where(v < 0, log_tail, tl.log(1 - tl.exp(log_tail)))
    else:
        return tl.minimum(v, 0.0) - tl.log(1 + tl.exp(-tl.abs(v)))


@triton.jit
def log_cdf_slope(v, DISTRIBUTION: tl.constexpr):
    """d log f(v) / dv."""
    size = tl.abs(v)
    if DISTRIBUTION == "cauchy":
        return 1 / ((1 + v * v) * _arc(v))
    elif DISTRIBUTION == "reciprocal":
        return tl.where(v >= 0, 1 / ((1 + size) * (2 + size)), 1 / (2 + size))
    elif DISTRIBUTION == "optimal":
        far = tl.maximum(size, 0.25)
        middle = 1 / (0.5 + tl.minimum(tl.maximum(v, -0.25), 0.25))
        return tl.where(v < -0.25, 1 / far, tl.where(v > 0.25, 1 / (16 * far * far - far), middle))
    elif DISTRIBUTION == "gaussian":
        log_scaled = _log_scaled_erfc(size * 0.7071067811865476)
        low = tl.exp(-0.2257913526447274 - log_scaled)
        half_square = v * v * 0.5
        tail = 0.5 * tl.exp(log_scaled - half_square)
        return tl.where(v < 0, low, 0.3989422804014327 * tl.exp(-half_square) / (1 - tail))
    else:
        return 1 / (1 + tl.exp(v))

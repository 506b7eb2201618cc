"""Laplace's distribution and LapSum's threshold, in base-2 logarithms; shared by the kernels of few and of all classes.

Where i scores x lie above the threshold b of the k best, with A the sum of 2^-x over them and B that of 2^x over the
others, t = 2^b solves A t^2 + 2 (k - i) t = B. The kernels start from b where nothing lies above it, which is too high.
Scores that turn out to lie above the b of a split go over, and only lower it: so b falls to its exact value in at most
2 k splits, mostly in none to two.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import LN_2, ln, log2


@triton.jit
def threshold(above, k, log_a, log_b):
    """Log2 of t, where `above` scores lie above it; A B is at most i (n - i), so that nothing overflows."""
    surplus = above - k
    product = log_a + log_b
    root = log2(tl.abs(surplus) + tl.sqrt(surplus * surplus + tl.exp2(product)))
    root = tl.where(surplus == 0, 0.5 * product, root)
    return tl.where(surplus >= 0, root - log_a, log_b - root)


@triton.jit
def log_laplace(x):
    """Natural logarithm of the CDF at x ln 2, and its slope by x ln 2."""
    tail = 0.5 * tl.exp2(-tl.abs(x))
    return tl.where(x > 0, ln(1 - tail), x * LN_2 - LN_2), tl.where(x > 0, tail / (1 - tail), 1.0)

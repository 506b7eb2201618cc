"""Laplace's distribution and LapSum's threshold, in base-2 logarithms; shared by the kernels of few and of all classes.

Where i scaled scores x lie above the threshold b of the k best, with A the sum of 2^-x over them and B that of 2^x over
the others, t = 2^b solves A t^2 + 2 (k - i) t = B. The kernels start from b where nothing lies above it, which is too
high. While the highest of the others turns out to lie above the b of a split, it and all like it go over, which only
lowers b: so b falls to its exact value in at most 2 k splits, mostly in none to two.

A split is held as the lowest score above and the highest of the others, how far b lies from each, and A and B relative
to each: scores may be so far apart that b itself, rounded to float32, would not tell on which side of them it lies.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

from .maths import LN_2, ln, log2, log2_add

NOTHING_BELOW = tl.constexpr(-3e38)


@triton.jit
def margins(above, k, log_a, log_b, gap):
    """How far b lies below the lowest of `above` scores, and above the highest of the others, `gap` below that one.

    `log_a` and `log_b` are log2 of the sums of 2^-|x - that score|. A B is at most i (n - i), so nothing overflows.
    """
    surplus = above - k
    product = log_a + log_b - gap
    root = log2(tl.abs(surplus) + tl.sqrt(surplus * surplus + tl.exp2(product)))
    root = tl.where(surplus == 0, 0.5 * product, root)
    under, over = log_a - root, log_b - root
    return tl.where(surplus >= 0, under, gap - over), tl.where(surplus >= 0, gap - under, over)


@triton.jit
def goes_over(scores, steep, highest, over):
    """Which scores lie above b, or at it, where the highest of the others does; that one always, so that loops end."""
    return (scores - highest) * steep >= over


@triton.jit
def distances(scores, steep, lowest, highest, under, over):
    """How far scores lie above b."""
    higher = scores >= lowest
    return (scores - tl.where(higher, lowest, highest)) * steep + tl.where(higher, under, -over)


@triton.jit
def log_shares(log_a, log_b, under, over):
    """Log2 of the share that a score at the lowest above has in the sum of 2^-|x - b|, and of one at the highest below.

    This is the derivative of b by the score, by the implicit function theorem.
    """
    return -log2_add(log_a, log_b + under - over), -log2_add(log_b, log_a + over - under)


@triton.jit
def shares(scores, steep, lowest, highest, log_share_above, log_share_below):
    """The share of each score, from those of the two scores."""
    higher = scores >= lowest
    distance = tl.abs(scores - tl.where(higher, lowest, highest)) * steep
    return tl.exp2(tl.where(higher, log_share_above, log_share_below) - distance)


@triton.jit
def log_laplace(x):
    """Natural logarithm of the CDF at x ln 2, and its slope by x ln 2."""
    tail = 0.5 * tl.exp2(-tl.abs(x))
    return tl.where(x > 0, ln(1 - tail), x * LN_2 - LN_2), tl.where(x > 0, tail / (1 - tail), 1.0)

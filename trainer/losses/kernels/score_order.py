"""Order-preserving integers: a higher score has a higher integer.

A 16-bit score shares an int32 with its column, so that one maximum finds both; no two of these keys are equal, and
among equal scores the lower column has the higher key. A 32-bit score fills an int32 alone.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl

LOWEST = tl.constexpr(-(2**31))
NO_COLUMN = tl.constexpr(2**31 - 1)


@triton.jit
def ordered(scores, WIDE: tl.constexpr):
    """Scores as int32 in their order; 16-bit scores in the upper half, the lower half 0."""
    if WIDE:
        bits = scores.to(tl.int32, bitcast=True)
        return bits ^ ((bits >> 31) & 0x7FFFFFFF)
    else:
        bits = scores.to(tl.int16, bitcast=True).to(tl.int32) << 16
        return bits ^ ((bits >> 31) & 0x7FFF0000)


@triton.jit
def packed(scores, columns):
    """Keys of 16-bit scores and their columns."""
    return ordered(scores, False) ^ (columns ^ 0xFFFF)


@triton.jit
def score_of(key, DTYPE: tl.constexpr, WIDE: tl.constexpr):
    """The score in an ordered integer or a packed key, float32."""
    if WIDE:
        return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    else:
        bits = (key ^ ((key >> 31) & 0x7FFF0000)) >> 16
        return bits.to(tl.int16).to(DTYPE, bitcast=True).to(tl.float32)


@triton.jit
def is_nan(key_low, key_high, DTYPE: tl.constexpr, WIDE: tl.constexpr):
    """Whether the lowest or the highest ordered integer of some scores is beyond minus or plus infinity."""
    if WIDE:
        infinity = 0x7F800000
        mask = 0x7FFFFFFF
    elif DTYPE == tl.bfloat16:
        infinity = 0x7F80FFFF
        mask = 0x7FFF0000
    else:
        infinity = 0x7C00FFFF
        mask = 0x7FFF0000
    return (key_high > infinity) | ((key_low < 0) & ((key_low ^ mask) & mask > (infinity & mask)))

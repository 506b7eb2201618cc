"""Order-preserving integer keys: a score and its column in one integer, so that one maximum finds both.

A higher score has a higher key; among equal scores the lower column has the higher key; no two keys of a row are equal.
16-bit scores pack into 32 bits (up to 65,536 classes), 32-bit scores into 64.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl


@triton.jit
def pack(scores, columns, WIDE: tl.constexpr):
    """Keys of scores, int64 where WIDE and int32 otherwise."""
    if WIDE:
        bits = scores.to(tl.float32).to(tl.int32, bitcast=True)
        ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        return (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - columns).to(tl.int64)
    else:
        bits = scores.to(tl.int16, bitcast=True).to(tl.int32)
        ordered = bits ^ ((bits >> 15) & 0x7FFF)
        return (ordered << 16) | (0xFFFF - columns)


@triton.jit
def column_of(key, WIDE: tl.constexpr):
    """The column that a key carries, int32."""
    if WIDE:
        return 0x7FFFFFFF - (key & 0x7FFFFFFF).to(tl.int32)
    else:
        return 0xFFFF - (key & 0xFFFF)


@triton.jit
def score_of(key, DTYPE: tl.constexpr, WIDE: tl.constexpr):
    """The score that a key carries, float32."""
    if WIDE:
        ordered = (key >> 32).to(tl.int32)
        bits = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
        return bits.to(tl.float32, bitcast=True)
    else:
        ordered = key >> 16
        bits = ordered ^ ((ordered >> 15) & 0x7FFF)
        return bits.to(tl.int16).to(DTYPE, bitcast=True).to(tl.float32)


@triton.jit
def lowest_key(WIDE: tl.constexpr):
    """A key below every other."""
    if WIDE:
        return tl.full((), -(2**63), tl.int64)
    else:
        return tl.full((), -(2**31), tl.int32)

"""Fast logarithms: one instruction on the GPU where Triton's own are forty."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import os

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
LN_2 = tl.constexpr(0.6931471805599453)
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def log2(x):
    """Base-2 logarithm of float32, absolute error 2e-7 near 1 and relative error 2e-7 elsewhere."""
    if INTERPRETED:
        return tl.log2(x)
    else:
        return tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def ln(x):
    """Natural logarithm of float32."""
    return log2(x) * LN_2


@triton.jit
def log2_add(a, b):
    """log2(2^a + 2^b) of finite numbers."""
    return tl.maximum(a, b) + log2(1 + tl.exp2(-tl.abs(a - b)))

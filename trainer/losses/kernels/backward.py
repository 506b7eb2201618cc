"""The backward: writes each row's gradient once, zeros or the softmax's share, then the candidates' values over it."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl


@triton.jit
def backward_kernel(
    output_ptr,
    logits_ptr,
    upstream_ptr,
    scale_ptr,
    weights_ptr,
    gradient_ptr,
    columns_ptr,
    dense_ptr,
    row_stride,
    output_stride,
    C,
    m,
    upstream_stride,
    OVER_CLASSES: tl.constexpr,
    VECTOR: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    M: tl.constexpr,
):
    """See `launch.py` for the arguments' meaning; strides and `C` count in units of VECTOR columns."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, M)
    at = tl.load(columns_ptr + row * m + lane, mask=lane < m, other=0)
    values = tl.load(gradient_ptr + row * m + lane, mask=lane < m, other=0.0)
    weight = tl.load(weights_ptr + row)
    scale = tl.load(upstream_ptr + row * upstream_stride) * tl.load(scale_ptr) * weight
    kept = weight != 0
    output = output_ptr + row * output_stride * VECTOR
    if OVER_CLASSES:
        share = tl.load(dense_ptr + row * 2) * scale
        log_sum = tl.load(dense_ptr + row * 2 + 1)
    for tile in range(TILES):
        columns = tile * TILE + tl.arange(0, TILE)
        inside = columns < C * VECTOR
        if OVER_CLASSES:
            scores = tl.load(logits_ptr + row * row_stride * VECTOR + columns, mask=inside, other=0.0)
            dense = tl.where(kept, share * tl.exp(scores.to(tl.float32) - log_sum), 0.0)
        else:
            dense = tl.zeros((TILE,), tl.float32)
        tl.store(output + columns, dense.to(output_ptr.dtype.element_ty), mask=inside)
    tl.debug_barrier()
    values = tl.where(kept, values * scale, 0.0)
    tl.store(output + at, values.to(output_ptr.dtype.element_ty), mask=lane < m)


@triton.jit
def reduce_kernel(losses_ptr, weights_ptr, result_ptr, scale_ptr, rows, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of the losses (over the sum of the weights), and the factor that the gradient takes for it; one program."""
    lane = tl.arange(0, BLOCK)
    losses = tl.zeros((BLOCK,), tl.float32)
    weights = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        inside = start + lane < rows
        losses += tl.load(losses_ptr + start + lane, mask=inside, other=0.0)
        weights += tl.load(weights_ptr + start + lane, mask=inside, other=0.0)
    total = tl.sum(losses, axis=0)
    scale = 1.0
    if MEAN:
        weight = tl.sum(weights, axis=0)
        scale = 1 / tl.where(weight > 0, weight, 1.0)
    tl.store(result_ptr, total * scale)
    tl.store(scale_ptr, scale)

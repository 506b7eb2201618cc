"""The backward: writes each row's gradient; and the reduction of the rows' losses."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit(do_not_specialize=["rows", "row_stride", "output_stride", "upstream_stride", "C", "m"])
def backward_kernel(
    output_ptr,
    logits_ptr,
    upstream_ptr,
    saved_ptr,
    rows,
    row_stride,
    output_stride,
    upstream_stride,
    C,
    m,
    uniform,
    OVER_CLASSES: tl.constexpr,
    SMOOTHED: tl.constexpr,
    SCALED: tl.constexpr,
    CHAINED: tl.constexpr,
    VECTOR: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    M: tl.constexpr,
):
    """One row: zeros or the softmax's share, less `uniform` where SMOOTHED; then the candidates' values over it.

    See `run_kernels.py` for the arguments' meaning; strides and `C` count in units of VECTOR columns.
    """
    if CHAINED:
        gdc_wait()
        gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, M)
    saved = saved_ptr + rows + 1 + row * (2 + 2 * m)
    values = tl.load(saved + 2 + lane, mask=lane < m, other=0.0)
    at = tl.load(saved + 2 + m + lane, mask=lane < m, other=0.0).to(tl.int32, bitcast=True)
    weight = tl.load(saved_ptr + row)
    scale = tl.load(upstream_ptr + row * upstream_stride).to(tl.float32) * weight
    if SCALED:
        scale *= tl.load(saved_ptr + rows)
    kept = weight != 0
    output = output_ptr + row * output_stride * VECTOR
    if OVER_CLASSES:
        share = tl.load(saved) * scale
        log_sum = tl.load(saved + 1)
    for tile in range(TILES):
        columns = tile * TILE + tl.arange(0, TILE)
        inside = columns < C * VECTOR
        if OVER_CLASSES:
            scores = tl.load(logits_ptr + row * row_stride * VECTOR + columns, mask=inside, other=0.0)
            dense = share * tl.exp(scores.to(tl.float32) - log_sum)
            if SMOOTHED:
                dense -= uniform * scale
            dense = tl.where(kept, dense, 0.0)
        else:
            dense = tl.zeros((TILE,), tl.float32)
        tl.store(output + columns, dense.to(output_ptr.dtype.element_ty), mask=inside)
    tl.debug_barrier()
    values = tl.where(kept, values * scale, 0.0)
    tl.store(output + at, values.to(output_ptr.dtype.element_ty), mask=lane < m)


@triton.jit(do_not_specialize=["rows", "upstream_stride", "C", "m"])
def scatter_kernel(
    output_ptr,
    upstream_ptr,
    saved_ptr,
    rows,
    upstream_stride,
    C,
    m,
    SCALED: tl.constexpr,
    ROWS: tl.constexpr,
    M: tl.constexpr,
):
    """ROWS rows: the candidates' values, over an output (B, C) that holds zeros."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, M)[None, :]
    present = row < rows
    saved = saved_ptr + rows + 1 + row * (2 + 2 * m)
    inside = (lane < m) & present[:, None]
    values = tl.load(saved[:, None] + 2 + lane, mask=inside, other=0.0)
    at = tl.load(saved[:, None] + 2 + m + lane, mask=inside, other=0.0).to(tl.int32, bitcast=True)
    weight = tl.load(saved_ptr + row, mask=present, other=0.0)
    scale = tl.load(upstream_ptr + row * upstream_stride, mask=present, other=0.0).to(tl.float32) * weight
    if SCALED:
        scale *= tl.load(saved_ptr + rows)
    values = tl.where((weight != 0)[:, None], values * scale[:, None], 0.0)
    tl.store(output_ptr + (row * C)[:, None] + at, values.to(output_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["rows"])
def reduce_kernel(losses_ptr, saved_ptr, result_ptr, rows, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of the losses (over the sum of the weights), and the factor that the gradient takes for it; one program."""
    lane = tl.arange(0, BLOCK)
    losses = tl.zeros((BLOCK,), tl.float32)
    weights = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        inside = start + lane < rows
        losses += tl.load(losses_ptr + start + lane, mask=inside, other=0.0)
        weights += tl.load(saved_ptr + start + lane, mask=inside, other=0.0)
    total = tl.sum(losses, axis=0)
    scale = 1.0
    if MEAN:
        weight = tl.sum(weights, axis=0)
        scale = 1 / tl.where(weight > 0, weight, 1.0)
    tl.store(result_ptr, total * scale)
    tl.store(saved_ptr + rows, scale)

"""Rows that a device gathers itself, from its own memory or from page-locked memory of the host."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, attr-defined"

import weakref
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_COLUMNS = 1024


class Programs(NamedTuple):
    """How many programs share the rows at most, of how many warps each; a warp reads a row at a time."""

    most: int
    warps: int


# Many for the device's memory; few, large ones for the bus to the host, which leave the multiprocessors to others.
FROM_DEVICE, FROM_HOST = Programs(132, 8), Programs(8, 16)


def fetch_rows(features: Tensor, labels: Tensor, rows: Tensor, out: tuple[Tensor, Tensor], programs: Programs) -> None:
    """Write ``features[rows]`` and ``labels[rows]``.

    Args:
        features: ``(N, D)`` contiguous, on the device or in page-locked host memory.
        labels: ``(N,)`` int64 on the device.
        rows: ``(R,)`` int64 on the device.
        out: ``(R, D)`` and ``(R,)`` contiguous on the device, of the same types.
        programs: Who share the rows.
    """
    count, width = out[0].shape
    if count:
        rows_each = programs.warps
        grid = (min(triton.cdiv(count, rows_each), programs.most),)
        _fetch[grid](
            features, labels, rows, *out, count, width, ROWS=rows_each, COLUMNS=_COLUMNS, num_warps=programs.warps
        )


@triton.jit
def _fetch(
    features_ptr,
    labels_ptr,
    rows_ptr,
    out_ptr,
    out_labels_ptr,
    count,
    width,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    for first in range(tl.program_id(0) * ROWS, count, tl.num_programs(0) * ROWS):
        place = first + tl.arange(0, ROWS).to(tl.int64)  # 64 bits: batches may be large
        wanted = place < count
        row = tl.load(rows_ptr + place, mask=wanted, other=0)
        tl.store(out_labels_ptr + place, tl.load(labels_ptr + row, mask=wanted), mask=wanted)
        for start in range(0, width, COLUMNS):
            column = start + tl.arange(0, COLUMNS)[None]
            inside = wanted[:, None] & (column < width)
            values = tl.load(features_ptr + row[:, None] * width + column, mask=inside)
            tl.store(out_ptr + place[:, None] * width + column, values, mask=inside)


def page_locked(features: Tensor) -> Tensor | None:
    """A copy of CPU features that CUDA devices can read, locked while it lives; ``None`` where the system refuses."""
    copy = torch.empty(features.shape, dtype=features.dtype)
    runtime = torch.cuda.cudart()
    refused = runtime.cudaHostRegister(copy.data_ptr(), copy.numel() * copy.element_size(), 0)
    if int(refused):
        return None
    weakref.finalize(copy, runtime.cudaHostUnregister, copy.data_ptr())
    copy.copy_(features)
    return copy

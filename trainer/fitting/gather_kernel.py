"""Rows that a device gathers itself, from its own memory or from page-locked memory of the host."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, attr-defined"

import weakref

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024
# Programs that gather: many for the device's memory; for the bus to the host just enough (50 of the 55 GB/s of an
# H200's), so that the rest of the device is left to others.
FROM_DEVICE, FROM_HOST = 1024, 64


def fetch_rows(features: Tensor, labels: Tensor, rows: Tensor, out: tuple[Tensor, Tensor], programs: int) -> None:
    """Write ``features[rows]`` and ``labels[rows]``.

    Args:
        features: ``(N, D)`` contiguous, on the device or in page-locked host memory.
        labels: ``(N,)`` int64 on the device.
        rows: ``(R,)`` int64 on the device.
        out: ``(R, D)`` and ``(R,)`` contiguous on the device, of the same types.
        programs: How many share the rows.
    """
    count, width = out[0].shape
    if count:
        _fetch[(min(count, programs),)](features, labels, rows, *out, count, width, BLOCK=_BLOCK, num_warps=2)


@triton.jit
def _fetch(features_ptr, labels_ptr, rows_ptr, out_ptr, out_labels_ptr, count, width, BLOCK: tl.constexpr):
    for place in range(tl.program_id(0).to(tl.int64), count, tl.num_programs(0)):  # 64 bits: batches may be large
        row = tl.load(rows_ptr + place)
        tl.store(out_labels_ptr + place, tl.load(labels_ptr + row))
        source, target = features_ptr + row * width, out_ptr + place * width
        for start in range(0, width, BLOCK):
            column = start + tl.arange(0, BLOCK)
            inside = column < width
            tl.store(target + column, tl.load(source + column, mask=inside), mask=inside)


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

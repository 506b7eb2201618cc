"""Rows that a device reads from page-locked memory of the host, without the CPU."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, attr-defined"

import weakref

import torch
import triton
import triton.language as tl
from torch import Tensor

_PROGRAMS = 64
_BLOCK = 1024


def fetch_rows(features: Tensor, rows: Tensor, out: Tensor) -> None:
    """Write ``features[rows]`` to ``out``.

    A few small programs keep the bus busy (50 of the 55 GB/s of an H200's) and leave the rest of the device to others.

    Args:
        features: ``(N, D)`` contiguous, in page-locked host memory.
        rows: ``(R,)`` int64 on the device.
        out: ``(R, D)`` contiguous on the device, of the same type.
    """
    count, width = out.shape
    if count:
        _fetch[(min(count, _PROGRAMS),)](features, rows, out, count, width, BLOCK=_BLOCK, num_warps=2)


@triton.jit
def _fetch(features_ptr, rows_ptr, out_ptr, count, width, BLOCK: tl.constexpr):
    for place in range(tl.program_id(0), count, tl.num_programs(0)):
        row = tl.load(rows_ptr + place)
        source, target = features_ptr + row * width, out_ptr + place.to(tl.int64) * width
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

"""Small constant index tensors, copied to a device once."""

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

_CACHE: dict[tuple[Hashable, torch.device], list[Tensor]] = {}


def on_device(
    key: Hashable, rows: Sequence[Sequence[int]], device: torch.device, dtype: torch.dtype = torch.int64
) -> list[Tensor]:
    """`rows` as tensors on `device`; copied at the first call, so that later calls do not wait for the device."""
    if torch.compiler.is_compiling():
        return [torch.tensor(row, dtype=dtype, device=device) for row in rows]
    if (key, device) not in _CACHE:
        _CACHE[key, device] = [torch.tensor(row, dtype=dtype, device=device) for row in rows]
    return _CACHE[key, device]

"""Small constant tensors, copied to a device once."""

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

_CACHE: dict[tuple[Hashable, torch.device], list[Tensor]] = {}


def on_device(
    key: Hashable, values: Sequence[Any], device: torch.device, dtype: torch.dtype = torch.int64
) -> list[Tensor]:
    """Each of `values` as a tensor on `device`; copied once, so that later calls do not wait for the device."""
    if torch.compiler.is_compiling():
        return [torch.tensor(value, dtype=dtype, device=device) for value in values]
    if (key, device) not in _CACHE:
        _CACHE[key, device] = [torch.tensor(value, dtype=dtype, device=device) for value in values]
    return _CACHE[key, device]

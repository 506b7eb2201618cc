"""Noise that is drawn once: the same in every call, so that equal calls give equal losses, in captured graphs too."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def normal_draws(seed: int, samples: int, size: int, device: torch.device) -> Tensor:
    """Standard normal draws (samples, size); those for a smaller size are the first of them."""
    return _drawn_once(seed, samples, size, device)


@lru_cache
def _drawn_once(seed: int, samples: int, size: int, device: torch.device) -> Tensor:
    drawn = np.random.default_rng(seed).standard_normal((size, samples))
    return torch.from_numpy(drawn).t().contiguous().to(device)

"""Features with class structure, in the shapes of ImageNet-1K, ImageNet-21K-P and the glyph set."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """Rows of the training and validation split, dimensions and classes."""

    train: int
    val: int
    dims: int
    classes: int


IMAGENET = Shape(train=1_281_167, val=50_000, dims=2048, classes=1000)
IMAGENET_21K = Shape(train=500_000, val=10_000, dims=2048, classes=10_450)
GLYPHS = Shape(train=18_000, val=2_000, dims=1280, classes=1000)


@lru_cache(1)
def splits(shape: Shape, dtype: torch.dtype, device: torch.device) -> dict[str, tuple[Tensor, Tensor]]:
    """Rows around class centres that overlap, so that no head is always right. Drawn on `device`, kept on the CPU."""
    generator = torch.Generator(device).manual_seed(0)
    centres = torch.randn(shape.classes, shape.dims, generator=generator, device=device)
    found = {}
    for name, count in (("train", shape.train), ("val", shape.val)):
        labels = torch.randint(shape.classes, (count,), generator=generator, device=device)
        features = torch.empty(count, shape.dims, dtype=dtype)
        for start in range(0, count, 65536):
            own = labels[start : start + 65536]
            noise = torch.randn(len(own), shape.dims, generator=generator, device=device)
            features[start : start + 65536] = (0.2 * centres[own] + noise).to(dtype).cpu()
        found[name] = (features, labels.cpu())
    return found

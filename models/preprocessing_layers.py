"""The parts of a recipe that stand inside the graph: resize, crop, channel order, scale, mean, standard deviation."""

from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from .preprocessing import Preprocessing


class Normalize(nn.Module):
    """RGB pixels ``(N, 3, H, W)`` in 0..255, uint8 or float, to ``(x * scale - mean) / std`` in float32.

    The result has the channel order and the layout that the backbone expects.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.scale = preprocessing.scale
        self.flip = preprocessing.channel_order == "bgr"
        self.channels_last = preprocessing.layout == "nhwc"
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(preprocessing.std).view(1, 3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Normalise a batch."""
        pixels = pixels.flip(1) if self.flip else pixels
        normalised = (pixels.to(torch.float32) * self.scale - self.mean) / self.std
        return normalised.permute(0, 2, 3, 1) if self.channels_last else normalised


FILTERS = ("bilinear", "bicubic")


class Resize(nn.Module):
    """Pixels ``(N, 3, H, W)``, uint8, of any H and W, to float32 ``(N, 3, height, width)`` of the recipe's crop.

    What `Preprocessing` does with PIL, by torch's antialiased interpolation, whose filters are PIL's. Both round to
    whole pixels at the end; PIL does so between its two passes as well, so that a pixel may differ by 1, and by more
    where a bicubic filter overshoots 0 or 255 between them.

    Args:
        preprocessing: The recipe.

    Raises:
        InputError: A filter that torch has not, or a crop that is larger than the resized image.
    """

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        if preprocessing.interpolation not in FILTERS:
            raise InputError(
                f"--resize: {preprocessing.interpolation} interpolation cannot be written into a graph, only "
                f"{' and '.join(FILTERS)}; export without --resize"
            )
        if any(crop > size for crop, size in zip(preprocessing.crop_size, preprocessing.resize_size, strict=True)):
            raise InputError(
                f"--resize: crops {preprocessing.crop_size} pixels out of {preprocessing.resize_size}, which needs "
                "padding; export without --resize"
            )
        self.recipe = preprocessing

    def forward(self, pixels: Tensor) -> Tensor:
        """Resize and crop a batch of images of one size."""
        size = self._size(pixels.shape[2], pixels.shape[3])
        resized = nn.functional.interpolate(
            pixels.to(torch.float32), size=size, mode=self.recipe.interpolation, antialias=True
        )
        for axis, edge, crop in zip((2, 3), size, self.recipe.crop_size, strict=True):
            middle = torch.arange(crop, device=pixels.device) + _middle(edge, crop)
            resized = resized.index_select(axis, middle)  # a slice would have a size that exporters cannot tell
        return resized.clamp(0, 255)

    def _size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width after the resize."""
        if self.recipe.resize_mode == "exact":
            return self.recipe.resize_size
        edge = self.recipe.resize_size[0]
        shortest: Any
        if torch.jit.is_tracing():  # type: ignore[attr-defined,no-untyped-call]
            shortest = (height + width - abs(height - width)) // 2  # of tensors, of which `min` would make a constant
        else:
            shortest = torch.sym_min(height, width)
        return edge * height // shortest, edge * width // shortest


def _middle(size: int, crop: int) -> int:
    """``round((size - crop) / 2)``, halves to the even number, in whole numbers."""
    half = (size - crop) // 2
    return half + (size - crop) % 2 * (half % 2)

"""The part of a recipe that stands inside the network: channel order, scale, mean and standard deviation."""

import torch
from torch import Tensor, nn

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

"""The linear head."""

import torch
from torch import Tensor

from .affine import affine
from .head import Head


class Linear(Head):
    """The affine head ``features @ weight.T + bias``, started from zeros.

    Args:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, for a bank of heads.
    """

    kind = "linear"

    def __init__(self, in_features: int, num_classes: int, *, bank: int | None = None) -> None:
        super().__init__(in_features, num_classes, bank=bank)
        self.weight = self._parameter(num_classes, in_features)
        self.bias = self._parameter(num_classes)

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` or ``(H, N, C)``: see `affine`."""
        return affine(features, self.weight, self.bias)

    @torch.no_grad()
    def start_from(self, weight: Tensor, bias: Tensor) -> None:
        """Copy a classifier's weights."""
        self.weight.copy_(weight)
        self.bias.copy_(bias)

"""The head with one hidden layer."""

import torch
from torch import Tensor, nn

from ...core.errors import InputError
from ...core.json_values import JsonObject
from .affine import affine
from .head import Head, seeded_normal

HIDDEN = 2048


class MLP(Head):
    """``outer(gelu(inner(features)))``, one hidden layer with GELU.

    The inner weights start from seeded normal deviates of standard deviation ``sqrt(2 / D)`` (He et al. 2015); the
    outer ones from zeros, so that every class starts equal, as with a linear head.

    Args:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, for a bank of heads.
        hidden: The width of the hidden layer.

    Raises:
        InputError: A hidden layer of no width.
    """

    kind = "mlp"

    def __init__(self, in_features: int, num_classes: int, *, bank: int | None = None, hidden: int = HIDDEN) -> None:
        super().__init__(in_features, num_classes, bank=bank)
        if hidden < 1:
            raise InputError(f"--hidden: {hidden} found, expected 1 or more")
        self.hidden = hidden
        self.inner_weight = self._parameter(hidden, in_features)
        self.inner_bias = self._parameter(hidden)
        self.weight = self._parameter(num_classes, hidden)
        self.bias = self._parameter(num_classes)
        self.reset()

    @property
    def options(self) -> JsonObject:
        """``hidden``."""
        return {"hidden": self.hidden}

    @torch.no_grad()
    def reset(self, seed: int = 0) -> None:
        """Random inner weights, the same in every head of a bank; all else from zeros."""
        super().reset(seed)
        self.inner_weight.copy_(seeded_normal((self.hidden, self.in_features), (2 / self.in_features) ** 0.5, seed))

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` or ``(H, N, C)`` of features ``(N, D)``."""
        hidden = nn.functional.gelu(affine(features, self.inner_weight, self.inner_bias))
        return affine(hidden, self.weight, self.bias)

"""The cosine head."""

import math

import torch
from torch import Tensor, nn

from .affine import affine
from .head import Head, seeded_normal
from .norm_linear import NormLinear, unit

FIRST_SCALE = 10.0
SMALLEST_WEIGHT = 1e-3


class Cosine(Head):
    """``scale`` times the cosine of the angle between a feature and the weights of a class (Luo et al. 2018).

    The scale is learned, as its logarithm, from 10 on (Gidaris and Komodakis 2018): a fixed one caps the probability
    of a class, and the best one depends on the number of classes and on the loss's temperature. Weights start from
    seeded random directions of about unit length. A zero feature has logits of 0; weights shorter than 1e-3 are
    divided by 1e-3 instead of their length, so that a class of zero weights has finite gradients and learns.

    Args:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, for a bank of heads.
    """

    kind = "cosine"
    class_parameters = ("weight",)

    def __init__(self, in_features: int, num_classes: int, *, bank: int | None = None) -> None:
        super().__init__(in_features, num_classes, bank=bank)
        self.weight = self._parameter(num_classes, in_features)
        self.log_scale = self._parameter()
        self.reset()

    @torch.no_grad()
    def reset(self, seed: int = 0) -> None:
        """Random directions, the same in every head of a bank, and a scale of 10."""
        self.weight.copy_(seeded_normal((self.num_classes, self.in_features), self.in_features**-0.5, seed))
        nn.init.constant_(self.log_scale, math.log(FIRST_SCALE))

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` or ``(H, N, C)`` of features ``(N, D)``."""
        return affine(unit(features), self._scaled())

    @torch.no_grad()
    def folded(self) -> Head:
        """A `NormLinear` on features of unit length."""
        head = NormLinear(self.in_features, self.num_classes, norm="unit").to(self.weight)
        head.weight.copy_(self._scaled())
        return head.train(self.training)

    def _scaled(self) -> Tensor:
        """The directions of the classes times the scale."""
        directions = nn.functional.normalize(self.weight, dim=-1, eps=SMALLEST_WEIGHT)
        return directions * self.log_scale.exp()[..., None, None]

"""A linear head on normalised features."""

import torch
from torch import Tensor, nn

from ...core.errors import InputError
from ...core.json_values import JsonObject
from .affine import affine
from .head import Head
from .linear import Linear

NORMS = ("standard", "layer", "unit")
STD_FLOOR = 1e-3
EPSILON = 1e-6
SMALLEST_FEATURE = 1e-12


class NormLinear(Head):
    """A linear head, started from zeros, behind a normalisation that costs the exported file nothing, or little.

    ``standard``: every feature minus its mean, over its standard deviation, both of the training rows (see
    `fit_statistics`). ``layer``: every row minus its mean, over its standard deviation, times ``scale`` plus ``shift``
    (Ba, Kiros, Hinton 2016), which are learned. ``unit``: every row over its Euclidean length.

    Args:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, for a bank of heads.
        norm: ``standard``, ``layer`` or ``unit``.
        elementwise: Whether ``layer`` has its scale and shift; an exported one has them in its weights.

    Raises:
        InputError: Another norm.
    """

    kind = "norm_linear"

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        bank: int | None = None,
        norm: str = "standard",
        elementwise: bool = True,
    ) -> None:
        super().__init__(in_features, num_classes, bank=bank)
        if norm not in NORMS:
            raise InputError(f"--norm: {norm!r} is not known; expected one of {', '.join(NORMS)}")
        self.norm = norm
        self.elementwise = norm == "layer" and elementwise
        self.weight = self._parameter(num_classes, in_features)
        self.bias = self._parameter(num_classes)
        if norm == "standard":
            self.mean: Tensor
            self.std: Tensor
            self.register_buffer("mean", torch.zeros(in_features))
            self.register_buffer("std", torch.ones(in_features))
        elif self.elementwise:
            self.scale = self._parameter(in_features)
            self.shift = self._parameter(in_features)
            nn.init.ones_(self.scale)

    @property
    def options(self) -> JsonObject:
        """``norm`` and, where it is not the default, ``elementwise``."""
        return {"norm": self.norm} | ({} if self.elementwise or self.norm != "layer" else {"elementwise": False})

    def reset(self, seed: int = 0) -> None:
        """Weights, bias and shift from zeros, scale from ones; statistics stay."""
        super().reset(seed)
        if self.elementwise:
            nn.init.ones_(self.scale)

    def forward(self, features: Tensor) -> Tensor:
        """Logits ``(N, C)`` or ``(H, N, C)`` of features ``(N, D)``."""
        return affine(self.normalised(features), *self._inner())

    def normalised(self, features: Tensor) -> Tensor:
        """What the weights see: features ``(N, D)``, computed in float32 or wider, in the features' dtype."""
        if self.norm == "standard":
            return ((features - self.mean) / self.std).to(features.dtype)
        if self.norm == "unit":
            return unit(features)
        return nn.functional.layer_norm(features, (self.in_features,), eps=EPSILON)

    def _inner(self) -> tuple[Tensor, Tensor]:
        """Weight and bias behind the normalisation, scale and shift multiplied in: no head scales its own features."""
        if not self.elementwise:
            return self.weight, self.bias
        shift = (self.weight @ self.shift[..., None]).squeeze(-1)
        return self.weight * self.scale[..., None, :], self.bias + shift

    @torch.no_grad()
    def fit_statistics(self, mean: Tensor, std: Tensor) -> None:
        """Set what ``standard`` subtracts and divides by; the function that the head computes stays the same.

        A standard deviation below a thousandth of their root mean square is raised to that, so that a feature which
        is constant in training stays harmless when it is not in a test.

        Args:
            mean: ``(D,)`` of the training rows.
            std: ``(D,)`` of the training rows, 0 or more.

        Raises:
            ValueError: The head has no statistics.
        """
        if self.norm != "standard":
            raise ValueError(f"a head with norm={self.norm!r} has no statistics")
        weight, bias = self._affine()
        std = std.double()
        floor = STD_FLOOR * std.square().mean().sqrt()
        self.mean.copy_(mean)
        self.std.copy_(std.clamp(min=floor) if floor > 0 else torch.ones_like(std))
        self._take(weight, bias)

    @torch.no_grad()
    def start_from(self, weight: Tensor, bias: Tensor) -> None:
        """Take over an affine classifier of the features as they are; only ``standard`` can."""
        if self.norm != "standard":
            raise InputError(
                f"--norm {self.norm}: cannot start from an affine classifier; use --norm standard or --head linear"
            )
        self._take(weight.double().to(self.weight.device), bias.double().to(self.weight.device))

    @torch.no_grad()
    def folded(self) -> Head:
        """A `Linear` where the norm is ``standard``; else the head without scale and shift."""
        if self.norm == "standard":
            head: Linear | NormLinear = Linear(self.in_features, self.num_classes)
            weight, bias = self._affine()
        elif self.elementwise:
            head = NormLinear(self.in_features, self.num_classes, norm=self.norm, elementwise=False)
            weight, bias = self._inner()
        else:
            return self
        head.to(self.weight)
        head.weight.copy_(weight)
        head.bias.copy_(bias)
        return head.train(self.training)

    def _affine(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the equal function of features as they are, in float64."""
        weight = self.weight.double() / self.std.double()
        return weight, self.bias.double() - weight @ self.mean.double()

    def _take(self, weight: Tensor, bias: Tensor) -> None:
        """Set weight and bias such that the function of features as they are has these, in float64."""
        self.weight.copy_(weight * self.std.double())
        self.bias.copy_(bias + weight @ self.mean.double())


def unit(features: Tensor) -> Tensor:
    """Features ``(N, D)`` of Euclidean length 1, computed in float32 or wider, in their dtype; zeros stay zeros."""
    wide = features if features.dtype == torch.float64 else features.float()
    length: Tensor = wide.norm(dim=-1, keepdim=True)
    return (wide / length.clamp(min=SMALLEST_FEATURE)).to(features.dtype)

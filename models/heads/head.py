"""What every head has in common, and the bank axis."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ...core.errors import InputError
from ...core.json_values import JsonObject


class Head(nn.Module, ABC):
    """Features ``(N, D)`` to logits ``(N, C)``; a bank of H heads gives ``(H, N, C)``, each head's part contiguous.

    In a bank every parameter has one more leading axis of H. Buffers are shared by its heads.

    Attributes:
        in_features: D, the width of a feature.
        num_classes: C, the number of logits.
        bank: H, or ``None`` for a single head.
    """

    kind: ClassVar[str]
    class_parameters: ClassVar[tuple[str, ...]] = ("weight", "bias")

    def __init__(self, in_features: int, num_classes: int, *, bank: int | None = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.num_classes = num_classes
        self.bank = bank

    @property
    def options(self) -> JsonObject:
        """The keywords, as JSON values, that build this kind of head again."""
        return {}

    @abstractmethod
    def forward(self, features: Tensor) -> Tensor:
        """Logits of features ``(N, D)``."""

    @torch.no_grad()
    def reset(self, seed: int = 0) -> None:
        """Start anew: every head of a bank the same, from zeros where the kind can learn from zeros."""
        for parameter in self.parameters():
            parameter.zero_()

    @torch.no_grad()
    def member(self, index: int) -> Self:
        """A copy of one head of a bank, as a single head."""
        if self.bank is None:
            raise ValueError("a single head has no members")
        head = type(self)(self.in_features, self.num_classes, **self.options)
        parts = {name: parameter[index] for name, parameter in self.named_parameters()} | dict(self.named_buffers())
        head.load_state_dict({name: part.detach().clone() for name, part in parts.items()}, assign=True)
        return head.requires_grad_().train(self.training)

    @torch.no_grad()
    def with_classes(self, order: list[int]) -> Self:
        """A copy of a single head with its classes in another order: logit i is the logit ``order[i]`` of this one."""
        head = type(self)(self.in_features, len(order), **self.options)
        state = {
            name: (part[order] if name in self.class_parameters else part).detach().clone()
            for name, part in self.state_dict().items()
        }
        head.load_state_dict(state, assign=True)
        return head.requires_grad_().train(self.training)

    def start_from(self, weight: Tensor, bias: Tensor) -> None:
        """Take over the affine function ``features @ weight.T + bias``, in every head of a bank.

        Args:
            weight: ``(C, D)``.
            bias: ``(C,)``.

        Raises:
            InputError: This kind of head is not affine.
        """
        raise InputError(f"--head {self.kind}: cannot start from an affine classifier; use --head linear")

    def folded(self) -> "Head":
        """The equal single head with the least to compute, as it is exported."""
        return self

    def _parameter(self, *shape: int) -> nn.Parameter:
        return nn.Parameter(torch.zeros(shape if self.bank is None else (self.bank, *shape)))


def seeded_normal(shape: tuple[int, ...], std: float, seed: int) -> Tensor:
    """Normal deviates ``(*shape)``, float32, the same on every device."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * std

"""Refuses second derivatives where they would be wrong."""

from typing import Any

import torch
from torch import Tensor


def refuse_second_derivatives() -> None:
    """To be called in a backward that is not to be differentiated itself.

    `torch.autograd.function.once_differentiable` would not do: it lets a gradient pass as a constant when the upstream
    gradient is one, as that of a mean is.

    Raises:
        RuntimeError: the backward runs with `create_graph=True`. Compiled graphs refuse a second backward themselves.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise RuntimeError(
            "this loss has no second derivative: found a backward with create_graph=True, expected create_graph=False"
        )


class _OnceDifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        refuse_second_derivatives()
        return upstream


def without_second_derivatives(x: Tensor) -> Tensor:
    """`x`, whose gradient is refused where it is to be differentiated."""
    result: Tensor = _OnceDifferentiable.apply(x)
    return result

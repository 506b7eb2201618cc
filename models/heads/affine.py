"""The one product of features with weights, in mixed precision where the features are half and on a GPU."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

HALF = (torch.float16, torch.bfloat16)


def affine(features: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``features @ weight.T + bias``, for one head or for a bank of H heads.

    Half features and float32 weights on CUDA give logits of the features' dtype, accumulated in float32, and float32
    gradients of weight and bias. Everywhere else the features take the weights' dtype first.

    Args:
        features: ``(N, D)``, for a bank shared by its heads, or ``(H, N, D)``.
        weight: ``(C, D)``, or ``(H, C, D)`` for a bank.
        bias: ``(C,)``, or ``(H, C)`` for a bank.

    Returns:
        ``(N, C)``, or ``(H, N, C)`` for a bank, each head's part contiguous.
    """
    if features.is_cuda and features.dtype in HALF and weight.dtype == torch.float32:
        rounded = [None if part is None else _rounded(part, features.dtype) for part in (weight, bias)]
        logits: Tensor = _MixedAffine.apply(features, weight, bias, *rounded)
        return logits
    return _product(features.to(weight.dtype), weight, bias)


def keep_rounded(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    """Give a parameter a half-precision copy, which `affine` takes instead of rounding the parameter anew.

    Whoever changes the parameter changes the copy.
    """
    parameter.rounded = parameter.detach().to(dtype)  # type: ignore[attr-defined]
    return parameter.rounded  # type: ignore[attr-defined, no-any-return]


def _rounded(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    copy: Tensor | None = getattr(parameter, "rounded", None)
    return parameter.detach().to(dtype) if copy is None or copy.dtype != dtype else copy


def _product(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.ndim == 2:
        return torch.nn.functional.linear(features, weight, bias)
    features = features.expand(len(weight), *features.shape[-2:])
    if bias is None:
        return torch.bmm(features, weight.mT)
    return torch.baddbmm(bias[:, None, :], features, weight.mT)


class _MixedAffine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, half_weight: Tensor, half_bias: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(features, half_weight)
        return _product(features, half_weight, half_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, weight = ctx.saved_tensors
        asked = ctx.needs_input_grad
        return (
            _features_gradient(gradient, weight, shared=features.ndim == 2) if asked[0] else None,
            _weight_gradient(gradient, features) if asked[1] else None,
            column_sums(gradient) if asked[2] else None,
            None,
            None,
        )


def _features_gradient(gradient: Tensor, weight: Tensor, *, shared: bool) -> Tensor:
    if weight.ndim == 3 and shared:
        return gradient.transpose(0, 1).flatten(1) @ weight.flatten(0, 1)
    return gradient @ weight


def column_sums(gradient: Tensor) -> Tensor:
    """The sum over rows of ``(N, C)`` or ``(H, N, C)`` half precision, float32.

    It is a product with ones: faster than a reduction along the slow axis.
    """
    ones = gradient.new_ones(*gradient.shape[:-2], 1, gradient.shape[-2])
    product = torch.mm if gradient.ndim == 2 else torch.bmm
    return product(ones, gradient, out_dtype=torch.float32).squeeze(-2)


def _weight_gradient(gradient: Tensor, features: Tensor) -> Tensor:
    if gradient.ndim == 2:
        return torch.mm(gradient.mT, features, out_dtype=torch.float32)
    features = features.expand(len(gradient), *features.shape[-2:])
    return torch.bmm(gradient.mT, features, out_dtype=torch.float32)

"""The kernels as an autograd function, and as operators of torch that `torch.compile` traces."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..second_derivatives import refuse_second_derivatives
from ..targets import Targets
from . import run_kernels
from .plan import logits_are_kept, saved_size


def fused_loss(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """The weighted and reduced loss for one int64 label a row, () or (B,); targets that fit the logits."""
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    if torch.compiler.is_compiling():
        given = {name: tensor for name, tensor in zip(Targets._fields, targets, strict=True) if tensor is not None}
        traced: Tensor = _forward_op(logits, list(given.values()), " ".join(given), options.to_text())[0]
        return traced
    result: Tensor = _EagerLoss.apply(logits, targets, options, torch.is_grad_enabled())
    return result


class _EagerLoss(torch.autograd.Function):
    """What the operators below do, without their cost on the host.

    Where only the candidates have a gradient, the forward fills the gradient's tensor with zeros while it reads the
    logits, and the first backward puts the candidates' values there.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Targets, options: LossOptions, graded: bool) -> Tensor:
        again = options.inplace or logits_are_kept(options, logits.shape[1])
        zeroed = graded and not again and logits.requires_grad
        ctx.zeros = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device) if zeroed else None
        result, saved = run_kernels.forward(logits, targets, options, ctx.zeros)
        ctx.shape, ctx.dtype, ctx.options = logits.shape, logits.dtype, options
        ctx.save_for_backward(saved, *([logits] if again else []))
        ctx.set_materialize_grads(False)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 4
        refuse_second_derivatives()
        kept = ctx.saved_tensors
        zeros, ctx.zeros = ctx.zeros, None
        if zeros is not None:
            run_kernels.scatter(zeros, upstream, kept, ctx.options)
            return zeros, None, None, None
        if ctx.options.inplace:
            output = kept[1].detach()
        else:
            output = torch.empty(ctx.shape, dtype=ctx.dtype, device=upstream.device)
        run_kernels.backward(output, upstream, kept, ctx.options)
        return output, None, None, None


@torch.library.custom_op("headsmith::topk_cross_entropy", mutates_args=())
def _forward_op(logits: Tensor, tensors: Sequence[Tensor], names: str, options: str) -> tuple[Tensor, Tensor]:
    """The result, and what the backward needs; the targets that are given, and their names."""
    targets = Targets(**dict(zip(names.split(), tensors, strict=True)))
    return run_kernels.forward(logits, targets, LossOptions.from_text(options))


@_forward_op.register_fake
def _(logits: Tensor, tensors: Sequence[Tensor], names: str, options: str) -> tuple[Tensor, Tensor]:
    rows, classes = logits.shape
    asked = LossOptions.from_text(options)
    result = logits.new_empty(rows if asked.reduction == "none" else (), dtype=torch.float32)
    k = tensors[1].shape[-1]  # p_k or sample_p_k, which stand behind the labels
    return result, logits.new_empty(saved_size(rows, classes, k, asked), dtype=torch.float32)


@torch.library.custom_op("headsmith::topk_cross_entropy_backward", mutates_args=())
def _backward_op(
    upstream: Tensor, kept: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype, options: str
) -> Tensor:
    output = torch.empty(shape, dtype=dtype, device=upstream.device)
    run_kernels.backward(output, upstream, kept, LossOptions.from_text(options))
    return output


@_backward_op.register_fake
def _(upstream: Tensor, kept: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype, options: str) -> Tensor:
    return upstream.new_empty(shape, dtype=dtype)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    logits, tensors, _, ctx.options = inputs
    ctx.targets, ctx.shape, ctx.dtype = len(tensors), logits.shape, logits.dtype
    again = logits_are_kept(LossOptions.from_text(ctx.options), logits.shape[1])
    ctx.save_for_backward(output[1], *([logits] if again else []))
    ctx.set_materialize_grads(False)


def _traced_backward(ctx: Any, upstream: Tensor | None, *unused: Any) -> tuple[Any, ...]:
    by_targets = [None] * ctx.targets
    if upstream is None:
        return None, by_targets, None, None
    output = _backward_op(upstream, list(ctx.saved_tensors), list(ctx.shape), ctx.dtype, ctx.options)
    return output, by_targets, None, None


_forward_op.register_autograd(_traced_backward, setup_context=_keep)

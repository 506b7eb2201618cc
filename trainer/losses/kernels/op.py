"""The kernels as an autograd function, and as operators of torch that `torch.compile` traces."""

from typing import Any

import torch
from torch import Tensor

from ..settings import Settings
from . import launch

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def fused_loss(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    weight: Tensor | None,
    settings: Settings,
    m: int,
    *,
    per_sample: bool,
    ignore_index: int,
    reduction: str,
    inplace: bool,
) -> Tensor:
    """The weighted and reduced loss for one label a row; arguments as in `topk_cross_entropy`, m at most C."""
    arguments = (
        logits if logits.stride(1) == 1 else logits.contiguous(),
        labels,
        p_k,
        weight,
        settings.method,
        m,
        settings.beta(m),
        settings.distribution,
        settings.art_lambda,
        settings.softsort_power,
        settings.sinkhorn_iterations,
        settings.sinkhorn_tolerance,
        settings.top1_mode,
        settings.softmax_over,
        settings.floor,
        per_sample,
        ignore_index,
        reduction,
        inplace,
    )
    if torch.compiler.is_compiling():
        traced: Tensor = _forward_op(*arguments)[0]
        return traced
    result: Tensor = _EagerLoss.apply(*arguments)
    return result


def _forward(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    weight: Tensor | None,
    method: str,
    m: int,
    beta: float,
    distribution: str,
    art_lambda: float,
    softsort_power: float,
    sinkhorn_iterations: int,
    sinkhorn_tolerance: float,
    top1_mode: str,
    softmax_over: str,
    floor: float,
    per_sample: bool,
    ignore_index: int,
    reduction: str,
    inplace: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The result, then what the backward needs: scale, weights, candidates' gradient and columns, softmax's share."""
    losses, weights, gradient, columns, dense = launch.forward(
        logits,
        labels,
        p_k,
        weight,
        method=method,
        m=m,
        beta=beta,
        distribution=distribution,
        art_lambda=art_lambda,
        softsort_power=softsort_power,
        sinkhorn_iterations=sinkhorn_iterations,
        sinkhorn_tolerance=sinkhorn_tolerance,
        top1_mode=top1_mode,
        softmax_over=softmax_over,
        floor=floor,
        per_sample=per_sample,
        ignore_index=ignore_index,
    )
    if reduction == "none":
        return losses, losses.new_ones(1), weights, gradient, columns, dense
    result, scale = launch.reduce(losses, weights, reduction == "mean")
    return result, scale, weights, gradient, columns, dense


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Outputs) -> None:
    logits, ctx.inplace, ctx.inputs = inputs[0], inputs[-1], len(inputs)
    ctx.classes, ctx.dtype = logits.shape[1], logits.dtype
    keeps_logits = ctx.inplace or output[5].shape[0] > 0
    ctx.save_for_backward(*output[1:], *([logits] if keeps_logits else []))
    ctx.set_materialize_grads(False)


def _unpack(ctx: Any) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """What the backward needs, and the logits where they are kept."""
    tensors = ctx.saved_tensors
    return tensors[:5], tensors[5] if len(tensors) > 5 else None


class _EagerLoss(torch.autograd.Function):
    """What the operators below do, without their cost on the host."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output = _forward(*inputs)
        _keep(ctx, inputs, output)
        return output[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        nothing: tuple[None, ...] = (None,) * ctx.inputs
        if upstream is None:
            return nothing
        saved, logits = _unpack(ctx)
        if ctx.inplace and logits is not None:
            output = logits.detach()
        else:
            output = torch.empty(len(saved[1]), ctx.classes, dtype=ctx.dtype, device=saved[1].device)
        launch.backward(output, logits, upstream, *saved)
        return output, *nothing[1:]


_forward_op = torch.library.custom_op("headsmith::topk_cross_entropy", _forward, mutates_args=())


@_forward_op.register_fake
def _(
    logits: Tensor, labels: Tensor, p_k: Tensor, weight: Tensor | None, method: str, m: int, *options: Any
) -> Outputs:
    rows = logits.shape[0]
    top1_mode, softmax_over, reduction = options[6], options[7], options[11]
    over_classes = method == "softmax" or (softmax_over == "classes" and top1_mode != "sort")
    width = 1 if method == "softmax" else m
    return (
        logits.new_empty(rows if reduction == "none" else (), dtype=torch.float32),
        logits.new_empty(1, dtype=torch.float32),
        logits.new_empty(rows, dtype=torch.float32),
        logits.new_empty(rows, width, dtype=torch.float32),
        logits.new_empty(rows, width, dtype=torch.int32),
        logits.new_empty(rows if over_classes else 0, 2, dtype=torch.float32),
    )


@torch.library.custom_op("headsmith::topk_cross_entropy_backward", mutates_args=())
def _backward_op(
    upstream: Tensor,
    scale: Tensor,
    weights: Tensor,
    gradient: Tensor,
    columns: Tensor,
    dense: Tensor,
    logits: Tensor | None,
    classes: int,
    dtype: torch.dtype,
) -> Tensor:
    output = torch.empty(len(weights), classes, dtype=dtype, device=weights.device)
    launch.backward(output, logits, upstream, scale, weights, gradient, columns, dense)
    return output


@_backward_op.register_fake
def _(
    upstream: Tensor,
    scale: Tensor,
    weights: Tensor,
    gradient: Tensor,
    columns: Tensor,
    dense: Tensor,
    logits: Tensor | None,
    classes: int,
    dtype: torch.dtype,
) -> Tensor:
    return weights.new_empty(weights.shape[0], classes, dtype=dtype)


def _traced_backward(ctx: Any, upstream: Tensor | None, *unused: Any) -> tuple[Tensor | None, ...]:
    nothing: tuple[None, ...] = (None,) * ctx.inputs
    if upstream is None:
        return nothing
    saved, logits = _unpack(ctx)
    output = _backward_op(upstream, *saved, logits, ctx.classes, ctx.dtype)
    return output, *nothing[1:]


_forward_op.register_autograd(_traced_backward, setup_context=_keep)

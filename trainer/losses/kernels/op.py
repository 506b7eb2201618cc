"""The kernels as operators of torch: traced by `torch.compile`, differentiable, and free of host synchronisation."""

from typing import Any

import torch
from torch import Tensor

from . import launch


@torch.library.custom_op("headsmith::topk_cross_entropy", mutates_args=())
def topk_cross_entropy_op(
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
    """The reduced loss, then what the backward needs: scale, weights, candidates' gradient and columns, softmax share."""
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
        return losses, torch.ones(1, device=logits.device), weights, gradient, columns, dense
    result, scale = launch.reduce(losses, weights, reduction == "mean")
    return result, scale, weights, gradient, columns, dense


@topk_cross_entropy_op.register_fake
def _(
    logits: Tensor, labels: Tensor, p_k: Tensor, weight: Tensor | None, method: str, m: int, *options: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    rows = logits.shape[0]
    top1_mode, softmax_over, reduction = options[6], options[7], options[11]
    over_classes = method == "softmax" or (softmax_over == "classes" and top1_mode != "sort")
    width = 1 if method == "softmax" else m
    new = {"dtype": torch.float32}
    return (
        logits.new_empty(rows if reduction == "none" else (), **new),
        logits.new_empty(1, **new),
        logits.new_empty(rows, **new),
        logits.new_empty(rows, width, **new),
        logits.new_empty(rows, width, dtype=torch.int32),
        logits.new_empty(rows if over_classes else 0, 2, **new),
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


@torch.library.custom_op("headsmith::topk_cross_entropy_backward_", mutates_args=("logits",))
def _backward_inplace_op(
    logits: Tensor,
    upstream: Tensor,
    scale: Tensor,
    weights: Tensor,
    gradient: Tensor,
    columns: Tensor,
    dense: Tensor,
) -> None:
    launch.backward(logits, logits, upstream, scale, weights, gradient, columns, dense)


@_backward_inplace_op.register_fake
def _(
    logits: Tensor,
    upstream: Tensor,
    scale: Tensor,
    weights: Tensor,
    gradient: Tensor,
    columns: Tensor,
    dense: Tensor,
) -> None:
    return None


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, inplace = inputs[0], inputs[-1]
    _, scale, weights, gradient, columns, dense = output
    ctx.inplace = inplace
    ctx.classes, ctx.dtype = logits.shape[1], logits.dtype
    ctx.keeps_logits = inplace or dense.shape[0] > 0
    ctx.save_for_backward(scale, weights, gradient, columns, dense, *([logits] if ctx.keeps_logits else []))
    ctx.inputs = len(inputs)


def _backward(ctx: Any, upstream: Tensor, *unused: Any) -> tuple[Tensor | None, ...]:
    scale, weights, gradient, columns, dense, *logits = ctx.saved_tensors
    if ctx.inplace:
        output = logits[0].detach()
        _backward_inplace_op(output, upstream, scale, weights, gradient, columns, dense)
    else:
        kept = logits[0] if logits else None
        output = _backward_op(upstream, scale, weights, gradient, columns, dense, kept, ctx.classes, ctx.dtype)
    return output, *([None] * (ctx.inputs - 1))


topk_cross_entropy_op.register_autograd(_backward, setup_context=_setup_context)

"""The kernels as an autograd function, and as operators of torch that `torch.compile` traces."""

from typing import Any

import torch
from torch import Tensor

from ..first_order import first_order_only
from ..settings import Settings
from . import launch
from .launch import Options


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
    options = Options(
        settings.method,
        m,
        0.0 if settings.beta_by_row else settings.beta(m),
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
    )
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    if torch.compiler.is_compiling():
        traced: Tensor = _forward_op(logits, labels, p_k, weight, *options, reduction, inplace)[0]
        return traced
    result: Tensor = _EagerLoss.apply(logits, labels, p_k, weight, options, reduction, inplace, torch.is_grad_enabled())
    return result


class _EagerLoss(torch.autograd.Function):
    """What the operators below do, without their cost on the host.

    Where only the candidates have a gradient, the forward fills the gradient's tensor with zeros while it reads the
    logits, and the first backward puts the candidates' values there.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        labels: Tensor,
        p_k: Tensor,
        weight: Tensor | None,
        options: Options,
        reduction: str,
        inplace: bool,
        graded: bool,
    ) -> Tensor:
        zeroed = graded and not inplace and not options.over_classes and logits.requires_grad
        ctx.zeros = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device) if zeroed else None
        ctx.scaled = reduction != "none"
        losses, saved = launch.forward(logits, labels, p_k, weight, ctx.zeros, options, reduced=ctx.scaled)
        ctx.shape, ctx.dtype, ctx.inplace, ctx.options = logits.shape, logits.dtype, inplace, options
        ctx.save_for_backward(saved, *([logits] if inplace or options.over_classes else []))
        ctx.set_materialize_grads(False)
        return launch.reduce(losses, saved, reduction == "mean") if ctx.scaled else losses

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return (None,) * 8
        first_order_only()
        saved, *kept = ctx.saved_tensors
        logits = kept[0] if kept else None
        zeros, ctx.zeros = ctx.zeros, None
        if zeros is not None:
            output = zeros
        elif ctx.inplace and logits is not None:
            output = logits.detach()
        else:
            output = torch.empty(ctx.shape, dtype=ctx.dtype, device=saved.device)
        launch.backward(
            output,
            logits,
            upstream,
            saved,
            ctx.options.width,
            over_classes=ctx.options.over_classes,
            scaled=ctx.scaled,
            zeroed=zeros is not None,
        )
        return output, *(None,) * 7


@torch.library.custom_op("headsmith::topk_cross_entropy", mutates_args=())
def _forward_op(
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
) -> tuple[Tensor, Tensor]:
    """The result, and what the backward needs."""
    options = Options(
        method,
        m,
        beta,
        distribution,
        art_lambda,
        softsort_power,
        sinkhorn_iterations,
        sinkhorn_tolerance,
        top1_mode,
        softmax_over,
        floor,
        per_sample,
        ignore_index,
    )
    losses, saved = launch.forward(logits, labels, p_k, weight, None, options, reduced=reduction != "none")
    return losses if reduction == "none" else launch.reduce(losses, saved, reduction == "mean"), saved


@_forward_op.register_fake
def _(
    logits: Tensor, labels: Tensor, p_k: Tensor, weight: Tensor | None, method: str, m: int, *rest: Any
) -> tuple[Tensor, Tensor]:
    rows, reduction = logits.shape[0], rest[-2]
    width = 1 if method == "softmax" else m
    result = logits.new_empty(rows if reduction == "none" else (), dtype=torch.float32)
    return result, logits.new_empty(1 + rows * (3 + 2 * width), dtype=torch.float32)


@torch.library.custom_op("headsmith::topk_cross_entropy_backward", mutates_args=())
def _backward_op(
    upstream: Tensor,
    saved: Tensor,
    logits: Tensor | None,
    rows: int,
    classes: int,
    dtype: torch.dtype,
    m: int,
    over_classes: bool,
    scaled: bool,
) -> Tensor:
    output = torch.empty(rows, classes, dtype=dtype, device=saved.device)
    launch.backward(output, logits, upstream, saved, m, over_classes=over_classes, scaled=scaled)
    return output


@_backward_op.register_fake
def _(
    upstream: Tensor, saved: Tensor, logits: Tensor | None, rows: int, classes: int, dtype: torch.dtype, *rest: Any
) -> Tensor:
    return saved.new_empty(rows, classes, dtype=dtype)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    logits, ctx.inputs = inputs[0], len(inputs)
    options, ctx.scaled = Options(*inputs[4:-2]), inputs[-2] != "none"
    ctx.m, ctx.over_classes = options.width, options.over_classes
    ctx.rows, ctx.classes = logits.shape
    ctx.dtype = logits.dtype
    ctx.save_for_backward(output[1], *([logits] if ctx.over_classes else []))
    ctx.set_materialize_grads(False)


def _traced_backward(ctx: Any, upstream: Tensor | None, *unused: Any) -> tuple[Tensor | None, ...]:
    nothing: tuple[None, ...] = (None,) * ctx.inputs
    if upstream is None:
        return nothing
    saved, *kept = ctx.saved_tensors
    output = _backward_op(
        upstream,
        saved,
        kept[0] if kept else None,
        ctx.rows,
        ctx.classes,
        ctx.dtype,
        ctx.m,
        ctx.over_classes,
        ctx.scaled,
    )
    return output, *nothing[1:]


_forward_op.register_autograd(_traced_backward, setup_context=_keep)

"""The kernels as an autograd function, and as operators of torch that `torch.compile` traces."""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..second_derivatives import refuse_second_derivatives
from ..targets import Targets
from . import run_kernels
from .plan import logits_are_kept, numbers_kept

_logits_are_kept_once = cache(logits_are_kept)


class LossCall(NamedTuple):
    """What a call is for, beside its logits, and whether it may be asked for a gradient."""

    targets: Targets
    options: LossOptions
    graded: bool


def eager_loss(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """The weighted and reduced loss for one int64 label a row, () or (B,); targets that fit the logits."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    result: Tensor = _EagerLoss.apply(logits, LossCall(targets, options, torch.is_grad_enabled()))
    return result


def traced_loss(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """The same while `torch.compile` traces it."""
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    result: Tensor = _TracedLoss.apply(
        logits, *targets[:4], options.to_text(), logits_are_kept(options, logits.shape[1])
    )
    return result


class _EagerLoss(torch.autograd.Function):
    """What the operators below do, without their cost on the host.

    Where only the candidates have a gradient, the forward fills the gradient's tensor with zeros while it reads the
    logits, and the first backward puts the candidates' values there.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: LossCall) -> Tensor:
        targets, options, graded = call
        again = options.inplace or _logits_are_kept_once(options, logits.shape[1])
        zeroed = graded and not again and logits.requires_grad
        ctx.zeros = torch.empty_like(logits, memory_format=torch.contiguous_format) if zeroed else None
        result, saved = run_kernels.forward(logits, targets, options, ctx.zeros)
        ctx.shape, ctx.dtype, ctx.options = logits.shape, logits.dtype, options
        ctx.save_for_backward(*((saved, logits) if again else (saved,)))
        ctx.set_materialize_grads(False)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        if upstream is None:
            return None, None
        refuse_second_derivatives()
        saved, *logits = ctx.saved_tensors
        zeros, ctx.zeros = ctx.zeros, None
        if zeros is not None:
            run_kernels.scatter(zeros, upstream, saved, ctx.options)
            return zeros, None
        if ctx.options.inplace:
            output = logits[0].detach()
        else:
            output = torch.empty(ctx.shape, dtype=ctx.dtype, device=upstream.device)
        run_kernels.backward(output, upstream, saved, logits[0] if logits else None, ctx.options)
        return output, None


class _TracedLoss(torch.autograd.Function):
    """The same by operators, which a compiled graph calls as they are."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        labels: Tensor,
        p_k: Tensor | None,
        sample_p_k: Tensor | None,
        weight: Tensor | None,
        options: str,
        again: bool,
    ) -> Tensor:
        operator = torch.ops.headsmith.topk_cross_entropy.default
        result, saved = operator(logits, labels, p_k, sample_p_k, weight, options)
        ctx.shape, ctx.dtype, ctx.options = logits.shape, logits.dtype, options
        ctx.save_for_backward(saved, *([logits] if again else []))
        return result  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved, *logits = ctx.saved_tensors
        operator = torch.ops.headsmith.topk_cross_entropy_backward.default
        scores = logits[0] if logits else None
        output: Tensor = operator(upstream, saved, scores, *ctx.shape, ctx.dtype, ctx.options)
        return output, *[None] * 6


# Defined in torch's dispatcher, without the checks that `torch.library.custom_op` makes at every call.
_LIBRARY = torch.library.Library("headsmith", "FRAGMENT")
_FORWARD, _BACKWARD = "topk_cross_entropy", "topk_cross_entropy_backward"
_LIBRARY.define(
    f"{_FORWARD}(Tensor logits, Tensor labels, Tensor? p_k, Tensor? sample_p_k, Tensor? weight, str options)"
    " -> (Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
_LIBRARY.define(
    f"{_BACKWARD}(Tensor upstream, Tensor saved, Tensor? logits, SymInt rows, SymInt classes, ScalarType dtype,"
    " str options) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


@torch.library.impl(_LIBRARY, _FORWARD, "CompositeExplicitAutograd")
def _forward(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor | None,
    sample_p_k: Tensor | None,
    weight: Tensor | None,
    options: str,
) -> tuple[Tensor, Tensor]:
    """The result, and what the backward needs."""
    return run_kernels.forward(logits, Targets(labels, p_k, sample_p_k, weight), LossOptions.from_text(options))


def _fake_forward(logits: Tensor, labels: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    rows, classes = logits.shape
    asked = LossOptions.from_text(others[-1])
    result = logits.new_empty(rows if asked.reduction == "none" else (), dtype=torch.float32)
    k = others[0 if others[1] is None else 1].shape[-1]
    return result, logits.new_empty(1 + rows * numbers_kept(asked, classes, k), dtype=torch.float32)


@torch.library.impl(_LIBRARY, _BACKWARD, "CompositeExplicitAutograd")
def _backward(
    upstream: Tensor,
    saved: Tensor,
    logits: Tensor | None,
    rows: int,
    classes: int,
    dtype: torch.dtype,
    options: str,
) -> Tensor:
    output = torch.empty(rows, classes, dtype=dtype, device=upstream.device)
    run_kernels.backward(output, upstream, saved, logits, LossOptions.from_text(options))
    return output


def _fake_backward(
    upstream: Tensor, saved: Tensor, logits: Tensor | None, rows: int, classes: int, *others: Any
) -> Tensor:
    return upstream.new_empty((rows, classes), dtype=others[0])


torch.library.register_fake(f"headsmith::{_FORWARD}", _fake_forward, lib=_LIBRARY)
torch.library.register_fake(f"headsmith::{_BACKWARD}", _fake_backward, lib=_LIBRARY)

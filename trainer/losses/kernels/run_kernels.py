"""Runs the kernels on tensors."""

from math import gcd

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..targets import Targets, over_k
from . import run_lapsum_of_all
from .plan import logits_are_kept, numbers_kept
from .prepared_launches import backward_launch, forward_launch, kind_of, reduce_launch, scatter_launch, vector_width
from .widths import row_is_whole

PAIRED_ROWS = 2048


def forward(
    logits: Tensor, targets: Targets, options: LossOptions, zeros: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The weighted and reduced loss, and what the backward needs.

    Args:
        logits: (B, C) bfloat16, float16 or float32, neighbouring columns next to each other in memory.
        targets: one int64 label a row.
        options: what the loss is.
        zeros: (B, C) like the logits and contiguous, to be filled with zeros, or None.

    Returns:
        A scalar, or (B,) for reduction `none`, float32; and a flat tensor: B weights, the factor that the gradient
        takes for the reduction, and of each row the softmax's share of the gradient and the log-sum-exp where the
        softmax runs over classes or the labels are smoothed, its m candidates' gradient, and the bits of their columns.
    """
    rows, classes = logits.shape
    device = logits.device
    labels, _, per_row, weight = targets[:4]
    p_k = over_k(targets).contiguous()
    labels = labels.contiguous()
    weight = None if weight is None else weight.contiguous()
    k = p_k.shape[-1]
    losses = torch.empty(rows, dtype=torch.float32, device=device)
    saved = torch.empty(1 + rows * numbers_kept(options, classes, k), dtype=torch.float32, device=device)
    if row_is_whole(options, classes):
        if rows:
            vector = vector_width(classes, logits.stride(0), kind_of(logits))
            own = Targets(labels, *targets[1:3], weight)
            run_lapsum_of_all.forward(logits, own, options, vector, losses, saved)
        return losses if options.reduction == "none" else _reduce(losses, saved, options.reduction == "mean"), saved
    by_class, by_row = (0, 0) if p_k.ndim == 1 else (k, 0) if per_row is None else (0, k)
    launch, together, floats, codes = forward_launch(
        options,
        device,
        rows >= PAIRED_ROWS,
        zeros is not None,
        (classes, logits.stride(0), kind_of(logits)),
        kind_of(labels),
        (k, by_class, by_row, kind_of(p_k)),
        None if weight is None else kind_of(weight),
    )
    scratch = torch.empty(rows, floats, dtype=torch.float32, device=device) if floats else losses
    if rows:
        tensors = (
            logits,
            labels,
            p_k,
            losses if weight is None else weight,
            labels if codes is None else codes,
            scratch,
            losses,
            saved,
            logits if zeros is None else zeros,
        )
        launch(-(-rows // together), tensors, rows)
    return losses if options.reduction == "none" else _reduce(losses, saved, options.reduction == "mean"), saved


def _reduce(losses: Tensor, saved: Tensor, mean: bool) -> Tensor:
    """The sum or weighted mean of losses (B,); leaves the factor that the gradient takes for it in `saved`."""
    rows, device = losses.shape[0], losses.device
    result = torch.empty((), dtype=torch.float32, device=device)
    block = min(max(1 << (rows - 1).bit_length(), 128), 8192)
    reduce_launch(device, mean, block)(1, (losses, saved, result), rows)
    return result


def backward(output: Tensor, upstream: Tensor, saved: Tensor, logits: Tensor | None, options: LossOptions) -> None:
    """Write the gradient by the logits.

    Args:
        output: (B, C), where to; it may be the logits themselves.
        upstream: (B,) or a scalar, the gradient by the loss.
        saved: what the forward left.
        logits: (B, C), which are read where every class has a gradient.
        options: what the loss is.
    """
    rows, classes = output.shape
    if not rows:
        return
    scores = logits if logits is not None and logits_are_kept(options, classes) else output
    shapes = [(x.stride(0), kind_of(x)) for x in (scores, output)]
    if row_is_whole(options, classes):
        vector = gcd(*(vector_width(classes, *shape) for shape in shapes))
        run_lapsum_of_all.backward(output, upstream, scores, saved, options, vector)
        return
    launch = backward_launch(options, output.device, classes, *shapes, _kind_of_upstream(upstream))
    launch(rows, (output, scores, upstream, saved), rows)


def scatter(output: Tensor, upstream: Tensor, saved: Tensor, options: LossOptions) -> None:
    """`backward` over an output (B, C) that is contiguous and holds zeros already."""
    rows, classes = output.shape
    if not rows:
        return
    launch, together = scatter_launch(options, output.device, classes, kind_of(output), _kind_of_upstream(upstream))
    launch(-(-rows // together), (output, upstream, saved), rows)


def _kind_of_upstream(upstream: Tensor) -> tuple[int, tuple[torch.dtype, int]]:
    return upstream.stride(0) if upstream.ndim else 0, kind_of(upstream)

"""Runs the kernels of LapSum over all classes on tensors."""

import triton
from torch import Tensor

from ...loss_options import LossOptions
from ..targets import Targets, over_k
from .lapsum_of_all import backward_of_all_kernel, forward_of_all_kernel

LANES = 32  # scores of a thread: registers hold them and what a pass over them makes
WIDEST = 8192
GRADIENTS = 1024


def saved_numbers(k: int) -> int:
    """How many numbers of a row the forward leaves for the backward, beside its weight."""
    return 4 + 4 * k


def forward(logits: Tensor, targets: Targets, options: LossOptions, vector: int, losses: Tensor, saved: Tensor) -> None:
    """Write the losses (B,) of rows of logits (B, C), and `saved`.

    `saved` holds B weights, the factor of the reduction, and of each row: the softmax's share of the gradient and the
    log-sum-exp, the label's own share and the bits of its column, and of each k, (4, K), the lowest score above the
    threshold, the highest below, and the base-2 logarithms of the gradient by the one and the other.
    """
    rows, classes = logits.shape
    labels, per_class, per_row, weight = targets[:4]
    p_k = over_k(targets)
    k = p_k.shape[-1]
    tile = min(triton.next_power_of_2(classes), WIDEST)
    forward_of_all_kernel[(rows,)](
        logits,
        labels,
        p_k,
        losses if weight is None else weight,
        losses,
        saved,
        logits.stride(0) // vector,
        classes // vector,
        k,
        k if p_k.ndim == 2 and per_class is not None else 0,
        k if p_k.ndim == 2 and per_row is not None else 0,
        options.ignore_index,
        options.beta(classes),
        options.floor,
        float(options.label_smoothing),
        MODE=options.top1_mode,
        FLOORED=options.floor > 0,
        SMOOTHED=options.label_smoothing > 0,
        WEIGHTED=weight is not None,
        VECTOR=vector,
        TILE=tile,
        TILES=triton.cdiv(classes, tile),
        RANKS=max(triton.next_power_of_2(k), 2),
        num_warps=max(tile // (32 * LANES), 1),
    )


def backward(
    output: Tensor, upstream: Tensor, logits: Tensor, saved: Tensor, options: LossOptions, vector: int
) -> None:
    """Write the gradient by the logits (B, C) to `output`, which may be the logits themselves."""
    rows, classes = output.shape
    k = ((len(saved) - 1) // rows - saved_numbers(0) - 1) // 4
    tile = min(triton.next_power_of_2(classes), GRADIENTS)
    backward_of_all_kernel[(rows,)](
        output,
        logits,
        upstream,
        saved,
        logits.stride(0) // vector,
        output.stride(0) // vector,
        upstream.stride(0) if upstream.ndim else 0,
        classes // vector,
        k,
        options.beta(classes),
        float(options.label_smoothing) / classes,
        MODE=options.top1_mode,
        SMOOTHED=options.label_smoothing > 0,
        SCALED=options.reduction != "none",
        VECTOR=vector,
        TILE=tile,
        TILES=triton.cdiv(classes, tile),
        num_warps=max(tile // (32 * LANES), 1),
    )

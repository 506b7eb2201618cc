"""Runs the kernels on tensors."""

from collections.abc import Sequence
from functools import cache
from math import gcd

import torch
import triton
from torch import Tensor

from ...loss_options import LossOptions
from ..constants import on_device
from ..targets import Targets
from . import run_lapsum_of_all
from .backward import backward_kernel, reduce_kernel, scatter_kernel
from .forward import forward_kernel
from .maths import INTERPRETED
from .plan import TILE, candidates_kept, logits_are_kept, plan, saved_size
from .widths import row_is_whole

PAIRED_ROWS = 2048
SCATTERED = 1024


def _vector(logits: Tensor) -> int:
    """How many neighbouring columns are loaded at once: at most 16 bytes, where every row is aligned to that."""
    widest = 16 // logits.element_size()
    return gcd(gcd(logits.shape[1], logits.stride(0)), gcd(widest, logits.data_ptr() // logits.element_size() % widest))


@cache
def _can_chain(device: torch.device) -> bool:
    return not INTERPRETED.value and torch.cuda.get_device_capability(device) >= (9, 0)


def _chain(device: torch.device, alone: bool) -> dict[str, bool]:
    """Lets a kernel start while the one before it ends (programmatic dependent launch, from Hopper on).

    Only where forward and dense backward are `alone`: between kernels of few programs it cost more than it gave.
    """
    return {"CHAINED": True, "launch_pdl": True} if alone and _can_chain(device) else {"CHAINED": False}


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
        softmax runs over classes, its m candidates' gradient, and the bits of their columns.
    """
    rows, classes = logits.shape
    labels, per_class, per_row, weight = targets[:4]
    p_k = targets.over_k
    k = p_k.shape[-1]
    vector = _vector(logits)
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(saved_size(rows, classes, k, options), dtype=torch.float32, device=logits.device)
    if row_is_whole(options, classes):
        if rows:
            run_lapsum_of_all.forward(logits, targets, options, vector, losses, saved)
        return losses if options.reduction == "none" else _reduce(losses, saved, options.reduction == "mean"), saved
    m = candidates_kept(options, classes)
    own = plan(options, classes, k, vector, logits.element_size() == 4, rows >= PAIRED_ROWS)
    scratch, codes = losses, labels
    if own.needs.scratch:
        scratch = torch.empty(rows, own.needs.scratch, dtype=torch.float32, device=logits.device)
    if own.needs.codes is not None:
        key = ("codes", options.method, m, k, own.constants["M"])
        codes = on_device(key, [own.needs.codes], logits.device, torch.int32)[0]
    alone = options.reduction == "none" and zeros is None
    if rows:
        forward_kernel[(triton.cdiv(rows, own.needs.rows),)](
            logits,
            labels,
            p_k,
            losses if weight is None else weight,
            codes,
            scratch,
            losses,
            saved,
            logits if zeros is None else zeros,
            rows,
            logits.stride(0) // vector,
            classes // vector,
            m,
            k,
            own.needs.layers,
            own.needs.scratch,
            k if p_k.ndim == 2 and per_class is not None else 0,
            k if p_k.ndim == 2 and per_row is not None else 0,
            options.ignore_index,
            0.0 if options.beta_by_row else options.beta(m),
            own.needs.setting,
            options.floor,
            WEIGHTED=weight is not None,
            ZEROS=zeros is not None,
            **own.constants,
            **_chain(logits.device, alone),
        )
    return losses if options.reduction == "none" else _reduce(losses, saved, options.reduction == "mean"), saved


def _reduce(losses: Tensor, saved: Tensor, mean: bool) -> Tensor:
    """The sum or weighted mean of losses (B,); leaves the factor that the gradient takes for it in `saved`."""
    result = torch.empty((), dtype=torch.float32, device=losses.device)
    block = min(max(triton.next_power_of_2(len(losses)), 128), 8192)
    warps = max(min(block // 256, 16), 1)
    reduce_kernel[(1,)](losses, saved, result, len(losses), MEAN=mean, BLOCK=block, num_warps=warps)
    return result


def backward(output: Tensor, upstream: Tensor, kept: Sequence[Tensor], options: LossOptions) -> None:
    """Write the gradient by the logits.

    Args:
        output: (B, C), where to; it may be the logits themselves.
        upstream: (B,) or a scalar, the gradient by the loss.
        kept: what the forward left, and the logits (B, C) where every class has a gradient.
        options: what the loss is.
    """
    rows, classes = output.shape
    if not rows:
        return
    logits = kept[1] if logits_are_kept(options, classes) else output
    vector = gcd(_vector(logits), _vector(output))
    if row_is_whole(options, classes):
        run_lapsum_of_all.backward(output, upstream, logits, kept[0], options, vector)
        return
    tile = min(triton.next_power_of_2(classes), TILE)
    m, scaled = candidates_kept(options, classes), options.reduction != "none"
    backward_kernel[(rows,)](
        output,
        logits,
        upstream,
        kept[0],
        logits.stride(0) // vector,
        output.stride(0) // vector,
        upstream.stride(0) if upstream.ndim else 0,
        classes // vector,
        m,
        OVER_CLASSES=options.over_classes,
        SCALED=scaled,
        VECTOR=vector,
        TILE=tile,
        TILES=triton.cdiv(classes, tile),
        M=max(16, triton.next_power_of_2(m)),
        num_warps=1,
        **_chain(output.device, not scaled),
    )


def scatter(output: Tensor, upstream: Tensor, kept: Sequence[Tensor], options: LossOptions) -> None:
    """`backward` over an output (B, C) that is contiguous and holds zeros already."""
    rows, classes = output.shape
    if not rows:
        return
    m = candidates_kept(options, classes)
    width = max(16, triton.next_power_of_2(m))
    step = max(SCATTERED // width, 1)
    scatter_kernel[(triton.cdiv(rows, step),)](
        output,
        upstream,
        kept[0],
        rows,
        upstream.stride(0) if upstream.ndim else 0,
        classes,
        m,
        SCALED=options.reduction != "none",
        ROWS=step,
        M=width,
        num_warps=4,
    )

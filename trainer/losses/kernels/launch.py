"""Chooses shapes for the kernels and launches them."""

from collections.abc import Sequence
from functools import cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from ..constants import on_device
from ..method_defaults import NETWORKS
from ..options import LossOptions
from ..relaxations.networks import codes_by_count
from ..targets import Targets
from .backward import backward_kernel, reduce_kernel, scatter_kernel
from .forward import forward_kernel
from .maths import INTERPRETED

TILE = 2048
UNROLLED_WIDTH = 16
UNROLLED_LAYERS = 16
PAIRED_ROWS = 2048
SCATTERED = 1024


class _Plan(NamedTuple):
    """How the forward is launched: what goes into the kernel beside tensors, and its constants."""

    rows: int
    layers: int
    scratch: int
    codes: np.ndarray | None
    constants: dict[str, Any]


def _registers(method: str, width: int, layers: int, rows: int) -> int | None:
    """The bound on a thread's registers that ran fastest on an H100; None leaves it to the compiler."""
    if method in NETWORKS:
        return 96 if rows == 1 and width <= UNROLLED_WIDTH and layers <= 12 else 128
    return 128 if method == "softsort" and width > UNROLLED_WIDTH else None


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


def _candidates(options: LossOptions, classes: int) -> int:
    """The number of candidates that are kept."""
    return options.candidates(classes) if options.relaxed else 1


def saved_size(rows: int, classes: int, options: LossOptions) -> int:
    """How many numbers the forward leaves for the backward."""
    return 1 + rows * (3 + 2 * _candidates(options, classes))


@cache
def _plan(options: LossOptions, classes: int, k: int, vector: int, wide: bool, many: bool) -> _Plan:
    method, m = options.method, _candidates(options, classes)
    width = max(16, triton.next_power_of_2(m))
    group = 32 if classes <= 4096 else 64
    groups = max(triton.next_power_of_2(triton.cdiv(classes, group)), 2)
    tile_groups = min(groups, TILE // group)
    layers, scratch, unrolled, rows = 0, 0, False, 1
    codes = None
    if method in NETWORKS:
        codes = codes_by_count(method, m, k, width)
        layers = codes.shape[1]
        unrolled = width <= UNROLLED_WIDTH and layers <= UNROLLED_LAYERS
        scratch = 0 if unrolled else layers * 2 * width
        rows = 2 if unrolled and many else 1
    elif method == "sinkhorn":
        layers, scratch = options.sinkhorn_iterations, options.sinkhorn_iterations * width
    constants = {
        "METHOD": method,
        "DISTRIBUTION": options.distribution,
        "MODE": options.top1_mode,
        "OVER_CLASSES": options.over_classes,
        "LINEAR": options.softsort_power == 1,
        "FLOORED": options.floor > 0,
        "WIDE": wide,
        "VECTOR": vector,
        "GROUP": group,
        "TILE_GROUPS": tile_groups,
        "TILES": groups // tile_groups,
        "ROWS": rows,
        "M": width,
        "RANKS": max(triton.next_power_of_2(k), 2),
        "LAYERS": layers if unrolled else 0,
        "maxnreg": _registers(method, width, layers, rows),
        "num_warps": 2 if method == "sinkhorn" and width > 32 else 1,
    }
    return _Plan(rows, layers, scratch, codes, constants)


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
    labels, per_class, per_row, weight = targets
    p_k = targets.over_k
    k = p_k.shape[-1]
    vector = _vector(logits)
    m = _candidates(options, classes)
    plan = _plan(options, classes, k, vector, logits.element_size() == 4, rows >= PAIRED_ROWS)
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(saved_size(rows, classes, options), dtype=torch.float32, device=logits.device)
    scratch, codes = losses, labels
    if plan.scratch:
        scratch = torch.empty(rows, plan.scratch, dtype=torch.float32, device=logits.device)
    if plan.codes is not None:
        key = ("codes", options.method, m, k, plan.constants["M"])
        codes = on_device(key, [plan.codes], logits.device, torch.int32)[0]
    alone = options.reduction == "none" and zeros is None
    if rows:
        forward_kernel[(triton.cdiv(rows, plan.rows),)](
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
            plan.layers,
            plan.scratch,
            k if p_k.ndim == 2 and per_class is not None else 0,
            k if p_k.ndim == 2 and per_row is not None else 0,
            options.ignore_index,
            0.0 if options.beta_by_row else options.beta(m),
            options.art_lambda,
            options.softsort_power,
            options.sinkhorn_tolerance,
            options.floor,
            WEIGHTED=weight is not None,
            ZEROS=zeros is not None,
            **plan.constants,
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
        kept: what the forward left, and the logits (B, C) where the softmax runs over classes.
        options: what the loss is.
    """
    rows, classes = output.shape
    if not rows:
        return
    logits = kept[1] if options.over_classes else output
    vector = gcd(_vector(logits), _vector(output))
    tile = min(triton.next_power_of_2(classes), TILE)
    m, scaled = _candidates(options, classes), options.reduction != "none"
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
    m = _candidates(options, classes)
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

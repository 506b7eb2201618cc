"""Chooses shapes for the kernels and launches them."""

from functools import cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from ..constants import on_device
from ..relaxations.networks import codes_by_count
from ..settings import NETWORKS
from .backward import backward_kernel, reduce_kernel, scatter_kernel
from .forward import forward_kernel
from .maths import INTERPRETED

TILE = 2048
UNROLLED_WIDTH = 16
UNROLLED_LAYERS = 16
PAIRED_ROWS = 2048
SCATTERED = 1024


class Options(NamedTuple):
    """What a loss is, beside its tensors; fields as in `Settings` and `topk_cross_entropy`.

    `beta` is the inverse temperature, 0 where each row's follows from how many of its classes are not masked.
    """

    method: str
    m: int
    beta: float
    distribution: str
    art_lambda: float
    softsort_power: float
    sinkhorn_iterations: int
    sinkhorn_tolerance: float
    top1_mode: str
    softmax_over: str
    floor: float
    per_sample: bool
    ignore_index: int

    @property
    def over_classes(self) -> bool:
        """Whether the softmax runs over all classes, so that every class has a gradient."""
        return self.method == "softmax" or (self.softmax_over == "classes" and self.top1_mode != "sort")

    @property
    def width(self) -> int:
        """The number of candidates that are kept."""
        return 1 if self.method == "softmax" else self.m


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


@cache
def _plan(options: Options, classes: int, k: int, vector: int, wide: bool, many: bool) -> _Plan:
    method = options.method
    width = max(16, triton.next_power_of_2(options.width))
    group = 32 if classes <= 4096 else 64
    groups = max(triton.next_power_of_2(triton.cdiv(classes, group)), 2)
    tile_groups = min(groups, TILE // group)
    layers, scratch, unrolled, rows = 0, 0, False, 1
    codes = None
    if method in NETWORKS:
        codes = codes_by_count(method, options.width, k, width)
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
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    weight: Tensor | None,
    zeros: Tensor | None,
    options: Options,
    *,
    reduced: bool,
) -> tuple[Tensor, Tensor]:
    """The losses of rows and what the backward needs.

    Args:
        logits: (B, C) bfloat16, float16 or float32, neighbouring columns next to each other in memory.
        labels: (B,) int64.
        p_k: (K,), (C, K) or, where `options.per_sample`, (B, K), float32.
        weight: (C,) or None.
        zeros: (B, C) like the logits and contiguous, to be filled with zeros, or None.
        options: what the loss is.
        reduced: whether `reduce` follows.

    Returns:
        weighted losses (B,), and a flat tensor: B weights, a place for `reduce`, and of each row the softmax's share of
        the gradient and the log-sum-exp where the softmax runs over classes, its m candidates' gradient, and the bits
        of their columns.
    """
    rows, classes = logits.shape
    k = p_k.shape[-1]
    vector = _vector(logits)
    m = options.width
    plan = _plan(options, classes, k, vector, logits.element_size() == 4, rows >= PAIRED_ROWS)
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(1 + rows * (3 + 2 * m), dtype=torch.float32, device=logits.device)
    scratch, codes = losses, labels
    if plan.scratch:
        scratch = torch.empty(rows, plan.scratch, dtype=torch.float32, device=logits.device)
    if plan.codes is not None:
        key = ("codes", options.method, m, k, plan.constants["M"])
        codes = on_device(key, [plan.codes], logits.device, torch.int32)[0]
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
            k if p_k.ndim == 2 and not options.per_sample else 0,
            k if p_k.ndim == 2 and options.per_sample else 0,
            options.ignore_index,
            options.beta,
            options.art_lambda,
            options.softsort_power,
            options.sinkhorn_tolerance,
            options.floor,
            WEIGHTED=weight is not None,
            ZEROS=zeros is not None,
            **plan.constants,
            **_chain(logits.device, not reduced and zeros is None),
        )
    return losses, saved


def reduce(losses: Tensor, saved: Tensor, mean: bool) -> Tensor:
    """The sum or weighted mean of losses (B,); leaves the factor that the gradient takes for it in `saved`."""
    result = torch.empty((), dtype=torch.float32, device=losses.device)
    block = min(max(triton.next_power_of_2(len(losses)), 128), 8192)
    warps = max(min(block // 256, 16), 1)
    reduce_kernel[(1,)](losses, saved, result, len(losses), MEAN=mean, BLOCK=block, num_warps=warps)
    return result


def backward(
    output: Tensor,
    logits: Tensor | None,
    upstream: Tensor,
    saved: Tensor,
    m: int,
    *,
    over_classes: bool,
    scaled: bool,
    zeroed: bool = False,
) -> None:
    """Write the gradient by the logits.

    Args:
        output: (B, C), where to; it may be `logits` itself.
        logits: (B, C), read only where `over_classes`; None stands for them elsewhere.
        upstream: (B,) or a scalar, the gradient by the loss.
        saved: what the forward left.
        m: number of candidates that it left.
        over_classes: whether every class has a gradient.
        scaled: whether `reduce` left a factor in `saved`.
        zeroed: whether the output is contiguous and holds zeros already.
    """
    rows, classes = output.shape
    if not rows:
        return
    width = max(16, triton.next_power_of_2(m))
    upstream_stride = upstream.stride(0) if upstream.ndim else 0
    if zeroed:
        step = max(SCATTERED // width, 1)
        scatter_kernel[(triton.cdiv(rows, step),)](
            output,
            upstream,
            saved,
            rows,
            upstream_stride,
            classes,
            m,
            SCALED=scaled,
            ROWS=step,
            M=width,
            num_warps=4,
        )
        return
    logits = output if logits is None else logits
    vector = gcd(_vector(logits), _vector(output))
    tile = min(triton.next_power_of_2(classes), TILE)
    backward_kernel[(rows,)](
        output,
        logits,
        upstream,
        saved,
        logits.stride(0) // vector,
        output.stride(0) // vector,
        upstream_stride,
        classes // vector,
        m,
        OVER_CLASSES=over_classes,
        SCALED=scaled,
        VECTOR=vector,
        TILE=tile,
        TILES=triton.cdiv(classes, tile),
        M=width,
        num_warps=1,
        **_chain(output.device, not scaled),
    )

"""Chooses shapes for the kernels and launches them."""

from functools import cache
from math import gcd

import torch
import triton
from torch import Tensor

from ..constants import on_device
from ..relaxations.networks import network
from ..settings import NETWORKS
from .backward import backward_kernel, reduce_kernel
from .forward import forward_kernel

TILE = 2048
UNROLLED_WIDTH = 16
UNROLLED_LAYERS = 16


@cache
def _codes(method: str, m: int, k: int, width: int) -> tuple[list[int], int]:
    """Each wire's partner, plus 256 where it gets the higher score, layer after layer, and the number of layers."""
    codes: list[int] = []
    layers = network(method, m, k)
    for layer in layers:
        row = list(range(width))
        for low, high in layer:
            row[low], row[high] = high, low + 256
        codes += row
    return codes, len(layers)


def _registers(method: str, width: int, layers: int) -> int | None:
    """The bound on a thread's registers that ran fastest on an H100; None leaves it to the compiler."""
    if method in NETWORKS:
        return 96 if width <= UNROLLED_WIDTH and layers <= 12 else 128
    return 128 if method == "softsort" and width > UNROLLED_WIDTH else None


def _vector(logits: Tensor) -> int:
    """How many neighbouring columns are loaded at once: at most 16 bytes, where every row is aligned to that."""
    widest = 16 // logits.element_size()
    return gcd(gcd(logits.shape[1], logits.stride(0)), gcd(widest, logits.data_ptr() // logits.element_size() % widest))


def forward(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    weight: Tensor | None,
    *,
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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Losses of rows and what the backward needs.

    Args:
        logits: (B, C) bfloat16, float16 or float32, neighbouring columns next to each other in memory.
        labels: (B,) int64.
        p_k: (K,), (C, K) or, where `per_sample`, (B, K), float32.
        weight: (C,) or None.
        method: the relaxation.
        m: number of candidates, at most C.
        beta: the inverse temperature.
        distribution: as in `Settings`.
        art_lambda: as in `Settings`.
        softsort_power: as in `Settings`.
        sinkhorn_iterations: as in `Settings`.
        sinkhorn_tolerance: as in `Settings`.
        top1_mode: as in `Settings`.
        softmax_over: as in `Settings`.
        floor: as in `Settings`.
        per_sample: whether a two-dimensional `p_k` has a row for each sample, and not for each class.
        ignore_index: rows with this label cost 0.

    Returns:
        weighted losses (B,), weights (B,), candidates' gradient (B, m), their columns (B, m) int32, and (B, 2) with the
        softmax's share of the gradient and the row's log-sum-exp where the softmax runs over classes.
    """
    rows, classes = logits.shape
    softmax = method == "softmax"
    m = 1 if softmax else m
    over_classes = softmax or (softmax_over == "classes" and top1_mode != "sort")
    width = max(16, triton.next_power_of_2(m))
    k = p_k.shape[-1]
    vector = _vector(logits)
    group = 32 if classes <= 4096 else 64
    groups = max(triton.next_power_of_2(triton.cdiv(classes, group)), 2)
    tile_groups = min(groups, TILE // group)
    losses = logits.new_empty(rows, dtype=torch.float32)
    weights = torch.empty_like(losses)
    gradient = losses.new_empty(rows, m)
    columns = losses.new_empty(rows, m, dtype=torch.int32)
    dense = losses.new_empty(rows if over_classes else 0, 2)
    layers, codes, stride, unrolled = 0, labels, 0, False
    if method in NETWORKS:
        flat, layers = _codes(method, m, k, width)
        codes = on_device(("codes", method, m, k, width), [flat], logits.device, torch.int32)[0]
        unrolled = width <= UNROLLED_WIDTH and layers <= UNROLLED_LAYERS
        stride = 0 if unrolled else layers * 2 * width
    elif method == "sinkhorn":
        layers, stride = sinkhorn_iterations, sinkhorn_iterations * width
    scratch = losses.new_empty(rows, stride)
    if rows:
        forward_kernel[(rows,)](
            logits,
            labels,
            p_k,
            weight if weight is not None else losses,
            codes,
            scratch,
            losses,
            weights,
            gradient,
            columns,
            dense,
            logits.stride(0) // vector,
            classes // vector,
            m,
            k,
            layers,
            stride,
            k if p_k.ndim == 2 and not per_sample else 0,
            k if per_sample and p_k.ndim == 2 else 0,
            ignore_index,
            beta,
            art_lambda,
            softsort_power,
            sinkhorn_tolerance,
            floor,
            METHOD=method,
            DISTRIBUTION=distribution,
            MODE=top1_mode,
            OVER_CLASSES=over_classes,
            LINEAR=softsort_power == 1,
            FLOORED=floor > 0,
            WEIGHTED=weight is not None,
            WIDE=logits.element_size() == 4,
            VECTOR=vector,
            GROUP=group,
            TILE_GROUPS=tile_groups,
            TILES=groups // tile_groups,
            M=width,
            RANKS=max(triton.next_power_of_2(k), 2),
            LAYERS=layers if unrolled else 0,
            maxnreg=_registers(method, width, layers),
            num_warps=2 if method == "sinkhorn" and width > 32 else 1,
        )
    return losses, weights, gradient, columns, dense


def reduce(losses: Tensor, weights: Tensor, mean: bool) -> tuple[Tensor, Tensor]:
    """The sum or weighted mean of losses (B,) as a scalar, and the factor (1,) that the gradient takes for it."""
    result, scale = losses.new_empty(()), losses.new_empty(1)
    block = min(max(triton.next_power_of_2(len(losses)), 128), 8192)
    warps = max(min(block // 256, 16), 1)
    reduce_kernel[(1,)](losses, weights, result, scale, len(losses), MEAN=mean, BLOCK=block, num_warps=warps)
    return result, scale


def backward(
    output: Tensor,
    logits: Tensor | None,
    upstream: Tensor,
    scale: Tensor,
    weights: Tensor,
    gradient: Tensor,
    columns: Tensor,
    dense: Tensor,
) -> None:
    """Write the gradient by the logits to `output` (B, C), which may be `logits` itself.

    `logits` are read only where the softmax runs over classes; None stands for them elsewhere.
    """
    rows, classes = output.shape
    logits = output if logits is None else logits
    if not rows:
        return
    vector = gcd(_vector(logits), _vector(output))
    tile = min(triton.next_power_of_2(classes), TILE)
    backward_kernel[(rows,)](
        output,
        logits,
        upstream,
        scale,
        weights,
        gradient,
        columns,
        dense,
        logits.stride(0) // vector,
        output.stride(0) // vector,
        classes // vector,
        gradient.shape[1],
        upstream.stride(0) if upstream.ndim else 0,
        OVER_CLASSES=len(dense) > 0,
        VECTOR=vector,
        TILE=tile,
        TILES=triton.cdiv(classes, tile),
        M=max(16, triton.next_power_of_2(gradient.shape[1])),
        num_warps=1,
    )

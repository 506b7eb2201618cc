"""The launches of the kernels, prepared once for each kind of call.

Arguments named `kind` are the type of a tensor, and where its memory begins within 16 bytes: `kind_of`.
"""

from functools import cache
from math import gcd
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from ...loss_options import LossOptions
from ..constants import on_device
from .backward import backward_kernel, reduce_kernel, scatter_kernel
from .direct_launch import Launch
from .forward import forward_kernel
from .maths import INTERPRETED
from .plan import TILE, candidates_kept, logits_are_kept, plan

Kind = tuple[torch.dtype, int]
SCATTERED = 1024
_WIDEST = 16


def kind_of(tensor: Tensor) -> Kind:
    """What Triton compiles a kernel for, of a tensor."""
    return tensor.dtype, tensor.data_ptr() % _WIDEST


class ForwardLaunch(NamedTuple):
    """The forward's launch, the rows of a program, its scratch of a row, and its table."""

    launch: Launch
    rows: int
    scratch: int
    codes: Tensor | None


@cache
def forward_launch(
    options: LossOptions,
    device: torch.device,
    many: bool,
    zeroed: bool,
    logits: tuple[int, int, Kind],
    labels: Kind,
    p_k: tuple[int, int, int, Kind],
    weight: Kind | None,
) -> ForwardLaunch:
    """The forward for `many` rows or few.

    Args:
        options: what the loss is.
        device: where it runs.
        many: whether the batch has many rows.
        zeroed: whether it fills the gradient's tensor with zeros.
        logits: C, the distance between two rows, and the kind.
        labels: their kind.
        p_k: K, the distances between two classes and between two rows, 0 where they share it, and the kind.
        weight: the kind of the class weights, if there are any.
    """
    classes, stride, kind = logits
    k, class_stride, row_stride, _ = p_k
    vector = vector_width(classes, stride, kind)
    m = candidates_kept(options, classes)
    needs, constants = plan(options, classes, k, vector, kind[0] == torch.float32, many)
    codes = None
    if needs.codes is not None:
        key = ("codes", options.method, m, k, constants["M"])
        codes = on_device(key, [needs.codes], device, torch.int32)[0]
    numbers = (
        stride // vector,
        classes // vector,
        m,
        k,
        needs.layers,
        class_stride,
        row_stride,
        options.ignore_index,
        0.0 if options.beta_by_row else options.beta(m),
        needs.setting,
        options.floor,
        float(options.label_smoothing),
    )
    own = {"WEIGHTED": weight is not None, "ZEROS": zeroed}
    chained = _chain(device, options.reduction == "none" and not zeroed)
    launch = Launch(forward_kernel, device, numbers, constants | own | chained)
    return ForwardLaunch(launch, needs.rows, needs.scratch, codes)


@cache
def reduce_launch(device: torch.device, mean: bool, block: int) -> Launch:
    """The reduction, `block` rows at a time."""
    warps = max(min(block // 256, 16), 1)
    return Launch(reduce_kernel, device, (), {"MEAN": mean, "BLOCK": block, "num_warps": warps})


@cache
def backward_launch(
    options: LossOptions,
    device: torch.device,
    classes: int,
    logits: tuple[int, Kind],
    output: tuple[int, Kind],
    upstream: tuple[int, Kind],
) -> Launch:
    """The backward that writes all of an output; of each tensor the distance between two rows, and the kind."""
    vector = gcd(vector_width(classes, *logits), vector_width(classes, *output))
    tile = min(triton.next_power_of_2(classes), TILE)
    m, scaled = candidates_kept(options, classes), options.reduction != "none"
    uniform = float(options.label_smoothing) / classes
    numbers = (logits[0] // vector, output[0] // vector, upstream[0], classes // vector, m, uniform)
    constants = {
        "OVER_CLASSES": logits_are_kept(options, classes),
        "SMOOTHED": options.label_smoothing > 0,
        "SCALED": scaled,
        "VECTOR": vector,
        "TILE": tile,
        "TILES": triton.cdiv(classes, tile),
        "M": _width(m),
        "num_warps": 1,
    }
    return Launch(backward_kernel, device, numbers, constants | _chain(device, not scaled))


@cache
def scatter_launch(
    options: LossOptions, device: torch.device, classes: int, output: Kind, upstream: tuple[int, Kind]
) -> tuple[Launch, int]:
    """The backward over zeros, and the rows of a program."""
    m = candidates_kept(options, classes)
    rows = max(SCATTERED // _width(m), 1)
    constants = {"SCALED": options.reduction != "none", "ROWS": rows, "M": _width(m), "num_warps": 4}
    return Launch(scatter_kernel, device, (upstream[0], classes, m), constants), rows


def _width(m: int) -> int:
    """The lanes for m candidates."""
    return max(16, 1 << (m - 1).bit_length())


def vector_width(classes: int, stride: int, kind: Kind) -> int:
    """How many neighbouring columns are loaded at once: at most 16 bytes, where every row is aligned to that."""
    dtype, begin = kind
    widest = _WIDEST // dtype.itemsize
    return gcd(gcd(classes, stride), gcd(widest, begin // dtype.itemsize))


@cache
def _can_chain(device: torch.device) -> bool:
    return not INTERPRETED.value and torch.cuda.get_device_capability(device) >= (9, 0)


def _chain(device: torch.device, alone: bool) -> dict[str, Any]:
    """Lets a kernel start while the one before it ends (programmatic dependent launch, from Hopper on).

    Only where forward and dense backward are `alone`: between kernels of few programs it cost more than it gave.
    """
    return {"CHAINED": True, "launch_pdl": True} if alone and _can_chain(device) else {"CHAINED": False}

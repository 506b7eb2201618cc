"""How the forward is launched: its shapes, its constants, and the kernel of the method.

`METHOD_DEFAULTS` names a module of this folder for each method. It holds two functions:

- `config(options, m, k, width, many)`: its `KernelConfig`, for m candidates on `width` lanes, k ranks, and whether the
  batch has many rows.
- `relax(row, target, memory, beta, setting, ...)`, a device function for ROWS rows. It returns the losses (ROWS,),
  their gradient by the scores (ROWS, M), and by the label's log-softmax (ROWS,).
  - `row`: scores (ROWS, M), 0 outside the candidates, the label's (ROWS,), how many candidates are not masked (ROWS,),
    and lanes (M,).
  - `target`: weights of ranks, or p_k for memberships, (ROWS, WEIGHTS) where `KernelConfig.weights` asked for them, the
    weight of the softmax and the label's log-softmax (ROWS,), the floor, and pointers (ROWS,) to p_k of K shares.
  - `memory`: scratch memory, the codes, the layers, the rows' numbers (ROWS,), and m.
"""

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import triton

from ...loss_defaults import FUSED, MEMBERSHIP, METHOD_DEFAULTS
from ...loss_options import LossOptions
from .kernel_config import KernelConfig
from .run_lapsum_of_all import saved_numbers
from .widths import row_is_whole

TILE = 2048
_KERNELS = {name: import_module(f".{METHOD_DEFAULTS[name].module}", __package__) for name in FUSED}


class KernelPlan(NamedTuple):
    """How the kernel of a method is launched, and its constants."""

    config: KernelConfig
    constants: dict[str, Any]


def logits_are_kept(options: LossOptions, classes: int) -> bool:
    """Whether the backward reads the logits again, since every class has a gradient."""
    return options.over_classes or options.label_smoothing > 0 or row_is_whole(options, classes)


def candidates_kept(options: LossOptions, classes: int) -> int:
    """The number of candidates that the forward leaves for the backward."""
    return options.candidates(classes) if options.relaxed else 1


def numbers_kept(options: LossOptions, classes: int, k: int) -> int:
    """How many numbers the forward leaves of a row for the backward; one more stands for all rows."""
    if row_is_whole(options, classes):
        return 1 + saved_numbers(k)
    return 3 + 2 * candidates_kept(options, classes)


@cache
def plan(options: LossOptions, classes: int, k: int, vector: int, wide: bool, many: bool) -> KernelPlan:
    """The plan for rows of `classes` scores, loaded `vector` at once, of 32 bits where `wide`; `many` rows or few."""
    m = candidates_kept(options, classes)
    width = max(16, triton.next_power_of_2(m))
    group = 32 if classes <= 4096 else 64
    groups = max(triton.next_power_of_2(triton.cdiv(classes, group)), 2)
    tile_groups = min(groups, TILE // group)
    kernel = _KERNELS[options.method]
    config: KernelConfig = kernel.config(options, m, k, width, many)
    constants = {
        "RELAX": kernel.relax,
        "MEMBERSHIPS": METHOD_DEFAULTS[options.method].kind == MEMBERSHIP,
        "VARIANT": config.variant,
        "MODE": options.top1_mode,
        "OVER_CLASSES": options.over_classes,
        "FLOORED": options.floor > 0,
        "SMOOTHED": options.label_smoothing > 0,
        "WIDE": wide,
        "VECTOR": vector,
        "GROUP": group,
        "TILE_GROUPS": tile_groups,
        "TILES": groups // tile_groups,
        "ROWS": config.rows,
        "M": width,
        "WEIGHTS": config.weights,
        "RANKS": max(triton.next_power_of_2(k), 2),
        "LAYERS": config.layers if config.unrolled else 0,
        "maxnreg": config.registers,
        "num_warps": config.warps,
    }
    return KernelPlan(config, constants)

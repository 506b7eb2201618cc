"""Which implementation runs, and the one place where the two meet."""

import importlib.util
import os
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from ..loss_defaults import METHOD_DEFAULTS, METHODS
from ..loss_options import IMPLEMENTATIONS, LossOptions
from ..option_checks import choice, number
from .kernels.widths import MOST_CANDIDATES, of_all_classes
from .reduction import reduce_rows, row_weights
from .targets import Targets
from .torch_losses import torch_losses

_KERNEL_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_HAS_TRITON = importlib.util.find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def implementation(impl: str, logits: Tensor, m: int = 1, method: str = "softmax") -> str:
    """The implementation that `impl` means for these logits.

    Args:
        impl: `auto`, `torch` or `triton`.
        logits: any tensor of the device, type and shape in question.
        m: number of candidates.
        method: the method, of which some have no kernel.

    Returns:
        `torch` or `triton`.

    Raises:
        ValueError: the name is none of these, m is no number of candidates, or the kernels were asked for and cannot
            run.
        TypeError: the logits are no tensor.
    """
    choice("impl", impl, IMPLEMENTATIONS)
    number("m", m, "a whole number of at least 1", lambda x: x >= 1, whole=True)
    choice("method", method, METHODS)
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits: found {type(logits).__name__}, expected a tensor")
    return _chosen(impl, logits.device.type, logits.dtype, logits.shape[1:].numel(), m, method)


def _chosen(impl: str, device: str, dtype: torch.dtype, classes: int, m: int, method: str) -> str:
    if impl == "torch" or (impl == "auto" and device != "cuda"):
        return "torch"
    obstacle = _obstacle(device, dtype, classes, m, method)
    if impl == "triton" and obstacle:
        raise ValueError(f"impl: 'triton' found, but {obstacle}; expected impl='torch' or 'auto'")
    return "torch" if obstacle else "triton"


def _chosen_for(options: LossOptions, device: torch.device, dtype: torch.dtype, classes: int) -> str:
    m = options.candidates(classes) if options.relaxed else 1
    return _chosen(options.impl, device.type, dtype, classes, m, options.method)


_chosen_once = cache(_chosen_for)


def _obstacle(device: str, dtype: torch.dtype, classes: int, m: int, method: str) -> str:
    """Why the kernels cannot run, or nothing."""
    if not METHOD_DEFAULTS[method].fused:
        return f"method {method!r} has no kernel"
    if not _HAS_TRITON:
        return "triton is not installed"
    if torch.version.hip is not None:
        return "this torch is built for AMD, and the kernels for NVIDIA"
    if device != "cuda" and not _INTERPRETED:
        return f"logits are on {device}, and the kernels run on cuda"
    if dtype not in _KERNEL_DTYPES:
        return f"logits are {dtype}, and the kernels take bfloat16, float16 and float32"
    if of_all_classes(method, m, classes):
        return ""
    if m > MOST_CANDIDATES:
        return f"there are {m} candidates, and the kernels keep at most {MOST_CANDIDATES} in registers"
    if dtype.itemsize == 2 and classes > 65536:
        return f"there are {classes} classes, and 16-bit logits pack with at most 65536"
    return ""


def runs_kernels(logits: Tensor, options: LossOptions) -> bool:
    """Whether the kernels take these logits (B, C); a ValueError where they were asked for and cannot."""
    chosen = _chosen_for if torch.compiler.is_compiling() else _chosen_once
    return chosen(options, logits.device, logits.dtype, logits.shape[1]) == "triton"


def reduced_loss(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """The weighted and reduced loss for one int64 label a row, () or (B,); targets that fit the logits.

    Only the kernels smooth labels, and without class weights.
    """
    if runs_kernels(logits, options):
        if torch.compiler.is_compiling():
            from .kernels.fused_loss import traced_loss

            return traced_loss(logits, targets, options)
        return _imported_once().eager_loss(logits, targets, options)  # type: ignore[no-any-return]
    losses = torch_losses(logits, targets, options)
    labels, weight, classes = targets.labels, targets.weight, logits.shape[1]
    weights = row_weights(labels, weight, options.ignore_index, classes)
    return reduce_rows(losses if weight is None else losses * weights, weights, options.reduction)


@cache
def _imported_once() -> ModuleType:
    """The kernels' module; an import statement would cost every step more than its checks do."""
    from .kernels import fused_loss

    return fused_loss

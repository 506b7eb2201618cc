"""Which implementation runs, and the one place where the two meet."""

import importlib.util
import os

import torch
from torch import Tensor

from .checks import choice
from .reduction import reduce_rows, row_weights
from .reference import reference_losses
from .settings import IMPLEMENTATIONS, Settings

_KERNEL_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_MOST_CANDIDATES = 128
_HAS_TRITON = importlib.util.find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def implementation(impl: str, logits: Tensor, m: int = 1) -> str:
    """The implementation that `impl` means for these logits.

    Args:
        impl: `auto`, `torch` or `triton`.
        logits: any tensor of the device, type and shape in question.
        m: number of candidates.

    Returns:
        `torch` or `triton`.

    Raises:
        ValueError: the name is none of these, or the kernels were asked for and cannot run.
    """
    choice("impl", impl, IMPLEMENTATIONS)
    if impl == "torch":
        return "torch"
    if impl == "auto" and logits.device.type != "cuda":
        return "torch"
    obstacle = _obstacle(logits, m)
    if impl == "triton" and obstacle:
        raise ValueError(f"impl: 'triton' found, but {obstacle}; expected impl='torch' or 'auto'")
    return "torch" if obstacle else "triton"


def _obstacle(logits: Tensor, m: int) -> str:
    """Why the kernels cannot run, or nothing."""
    if not _HAS_TRITON:
        return "triton is not installed"
    if torch.version.hip is not None:
        return "this torch is built for AMD, and the kernels for NVIDIA"
    if logits.device.type != "cuda" and not _INTERPRETED:
        return f"logits are on {logits.device.type}, and the kernels run on cuda"
    if logits.dtype not in _KERNEL_DTYPES:
        return f"logits are {logits.dtype}, and the kernels take bfloat16, float16 and float32"
    if m > _MOST_CANDIDATES:
        return f"there are {m} candidates, and the kernels keep at most {_MOST_CANDIDATES} in registers"
    if logits.element_size() == 2 and logits.shape[1] > 65536:
        return f"there are {logits.shape[1]} classes, and 16-bit logits pack with at most 65536"
    return ""


def label_losses(
    logits: Tensor, labels: Tensor, p_k: Tensor, settings: Settings, *, per_sample: bool, ignore_index: int
) -> Tensor:
    """The loss of each row, (B,), 0 where the label is ignored."""
    return reduced_loss(
        logits,
        labels,
        p_k,
        settings,
        per_sample=per_sample,
        weight=None,
        ignore_index=ignore_index,
        reduction="none",
        inplace=False,
    )


def reduced_loss(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    settings: Settings,
    *,
    per_sample: bool,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    inplace: bool,
) -> Tensor:
    """The weighted and reduced loss for one label a row; arguments as in `topk_cross_entropy`."""
    m = settings.candidates(logits.shape[1])
    if implementation(settings.impl, logits, 1 if settings.method == "softmax" else m) == "triton":
        from .kernels.op import fused_loss

        return fused_loss(
            logits,
            labels,
            p_k,
            weight,
            settings,
            m,
            per_sample=per_sample,
            ignore_index=ignore_index,
            reduction=reduction,
            inplace=inplace,
        )
    if p_k.ndim == 2 and not per_sample:
        p_k = p_k[labels.clamp(0, logits.shape[1] - 1)]
    losses = reference_losses(logits, labels, p_k, settings, ignore_index)
    weights = row_weights(labels, weight, ignore_index, logits.shape[1])
    return reduce_rows(losses if weight is None else losses * weights, weights, reduction)

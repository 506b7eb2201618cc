"""Every form of labels, weights and reduction, over the losses of single labels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .implementation import label_losses, reduced_loss
from .rank_weights import PK, as_p_k, check_length, constant_p_k
from .reduction import label_columns, reduce_rows, row_weights
from .settings import Settings, choice
from .targets import check_labels, check_logits


def resolve_p_k(p_k: PK | None, settings: Settings, device: torch.device) -> Tensor:
    """`p_k` validated against the settings and placed on `device`; None becomes the method's default."""
    softmax = settings.method == "softmax"
    if p_k is None:
        p_k = [1.0] if softmax else [0.5, 0.0, 0.0, 0.0, 0.5]
    if isinstance(p_k, Tensor) or not p_k or isinstance(p_k[0], Sequence):
        tensor = as_p_k(p_k).to(device)
    else:
        tensor = constant_p_k(p_k, device)  # type: ignore[arg-type]
    if softmax and tensor.shape[-1] != 1:
        raise ValueError(f"p_k has {tensor.shape[-1]} entries, but method 'softmax' knows top-1 only; expected [1]")
    check_length(tensor.shape[-1], None if softmax else settings.m, None)
    return tensor


def check_reduction(reduction: str, label_smoothing: float) -> None:
    """Raise ValueError for an unknown reduction or a smoothing outside [0, 1)."""
    choice("reduction", reduction, ("mean", "sum", "none"))
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is {label_smoothing}, expected a number in [0, 1)")


def weighted_loss(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    settings: Settings,
    *,
    per_sample: bool,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    inplace: bool,
) -> Tensor:
    """Dispatch on the form of the labels; arguments as in `topk_cross_entropy`, `p_k` validated."""
    check_logits(logits)
    rows, num_classes = logits.shape
    check_labels(labels, rows, num_classes, logits.device, ignore_index)
    name = "sample_p_k" if per_sample else "p_k"
    check_length(p_k.shape[-1], settings.candidates(num_classes) if per_sample else None, num_classes, name)
    if p_k.ndim == 2 and len(p_k) != (rows if per_sample else num_classes):
        expected = f"({rows}, K), one row a sample" if per_sample else f"({num_classes}, K), one row a class"
        raise ValueError(f"{name} has shape {tuple(p_k.shape)}, expected {expected}")
    if weight is not None and weight.shape != (num_classes,):
        raise ValueError(f"weight has shape {tuple(weight.shape)}, expected ({num_classes},)")
    p_k = p_k.to(logits.device)
    if labels.ndim == 1 and label_smoothing == 0:
        return reduced_loss(
            logits,
            labels.long(),
            p_k,
            settings,
            per_sample=per_sample,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            inplace=inplace,
        )
    return _mixture(logits, labels, p_k, settings, per_sample, weight, ignore_index, reduction, label_smoothing)


def _mixture(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    settings: Settings,
    per_sample: bool,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """The loss as a weighted sum over several labels a row."""
    columns, shares = label_columns(labels, weight, ignore_index, logits.shape[1])
    losses = logits.new_zeros(len(logits), dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)
    for column, share in zip(columns.unbind(1), shares.unbind(1), strict=True):
        used = column.where(share != 0, ignore_index)
        losses = losses + share * label_losses(
            logits, used, p_k, settings, per_sample=per_sample, ignore_index=ignore_index
        )
    if label_smoothing:
        uniform = logits.to(losses).logsumexp(dim=1) - logits.to(losses).mean(dim=1)
        losses = (1 - label_smoothing) * losses + label_smoothing * shares.sum(dim=1) * uniform
    return reduce_rows(losses, row_weights(labels, weight, ignore_index, logits.shape[1]), reduction)

"""Every form of labels, weights and reduction, over the losses of single labels."""

import torch
from torch import Tensor

from .checks import choice, number
from .implementation import label_losses, reduced_loss
from .rank_weights import PK, check_length, p_k_on
from .reduction import LEFT_OUT, label_columns, mixed_losses, reduce_rows, row_weights
from .settings import Settings
from .targets import check_class_weight, check_labels


def resolve_p_k(p_k: PK | None, settings: Settings, device: torch.device) -> Tensor:
    """`p_k` validated against the settings and placed on `device`; None becomes the method's default."""
    softmax = settings.method == "softmax"
    if p_k is None:
        p_k = [1.0] if softmax else [0.5, 0.0, 0.0, 0.0, 0.5]
    tensor = p_k_on(p_k, device)
    if softmax and tensor.shape[-1] != 1:
        raise ValueError(f"p_k: {tensor.shape[-1]} entries found, but method 'softmax' knows top-1 only; expected [1]")
    check_length(tensor.shape[-1], None if softmax else settings.m, None)
    return tensor


def check_reduction(reduction: str, label_smoothing: float, ignore_index: int) -> None:
    """Raise ValueError for an unknown reduction, a smoothing outside [0, 1], or an index that is not a whole number."""
    choice("reduction", reduction, ("mean", "sum", "none"))
    number("label_smoothing", label_smoothing, "a number in [0, 1]", lambda x: 0 <= x <= 1)
    number("ignore_index", ignore_index, "a whole number", whole=True)


def check_batch(
    rows: int,
    num_classes: int,
    device: torch.device,
    labels: Tensor,
    p_k: Tensor,
    settings: Settings,
    *,
    per_sample: bool,
    weight: Tensor | None,
    ignore_index: int,
    weight_name: str = "weight",
) -> None:
    """Raise unless labels, `p_k` and class weights fit logits (rows, num_classes) on `device`."""
    check_labels(labels, rows, num_classes, device, ignore_index)
    name = "sample_p_k" if per_sample else "p_k"
    check_length(p_k.shape[-1], settings.candidates(num_classes) if per_sample else None, num_classes, name)
    if p_k.ndim == 2 and len(p_k) != (rows if per_sample else num_classes):
        expected = f"({rows}, K), one row a sample" if per_sample else f"({num_classes}, K), one row a class"
        raise ValueError(f"{name} has shape {tuple(p_k.shape)}, expected {expected}")
    check_class_weight(weight_name, weight, num_classes, device)


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
    """Dispatch on the form of the labels; arguments as in `topk_cross_entropy`, those that need no tensor checked."""
    check_batch(
        len(logits),
        logits.shape[1],
        logits.device,
        labels,
        p_k,
        settings,
        per_sample=per_sample,
        weight=weight,
        ignore_index=ignore_index,
    )
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
    columns, shares = label_columns(labels, weight, ignore_index, logits.shape[1])

    def losses(logits: Tensor, labels: Tensor, times: int) -> Tensor:
        repeated = p_k.repeat_interleave(times, dim=0) if per_sample and p_k.ndim == 2 and times > 1 else p_k
        return label_losses(logits, labels, repeated, settings, per_sample=per_sample, ignore_index=LEFT_OUT)

    total = mixed_losses(logits, columns, shares, losses)
    if label_smoothing:
        kept = row_weights(labels, None, ignore_index, logits.shape[1]) > 0
        scores = logits.to(total).where(kept.unsqueeze(1), 0.0)
        total = (1 - label_smoothing) * total + label_smoothing * _uniform_loss(scores, weight).where(kept, 0.0)
    return reduce_rows(total, row_weights(labels, weight, ignore_index, logits.shape[1]), reduction)


def _uniform_loss(scores: Tensor, weight: Tensor | None) -> Tensor:
    """The cross-entropy with uniform targets, class weights in it as in PyTorch; (B,) for scores (B, C)."""
    if weight is None:
        return scores.logsumexp(dim=1) - scores.mean(dim=1)
    weight = weight.to(scores)
    return scores.logsumexp(dim=1) * weight.mean() - (scores * weight).mean(dim=1)

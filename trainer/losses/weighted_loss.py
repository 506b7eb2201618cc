"""Every form of labels, weights and reduction, over the losses of single labels."""

import torch
from torch import Tensor

from ..loss_options import LossOptions
from .cached_options import changed
from .kernels_or_torch import reduced_loss, runs_kernels
from .rank_weights import check_length
from .reduction import LEFT_OUT, hardest_rows, label_columns, mixed_losses, reduce_rows, row_weights
from .targets import Targets, check_class_counts, check_class_weight, check_labels, over_k


def check_targets(
    shape: tuple[int, int], device: torch.device, targets: Targets, options: LossOptions, weight_name: str = "weight"
) -> None:
    """Raise unless labels, `p_k` and class weights fit logits of `shape` (B, C) on `device`."""
    rows, num_classes = shape
    check_labels(targets.labels, rows, num_classes, device, options.ignore_index)
    per_sample, p_k = targets.sample_p_k is not None, over_k(targets)
    name = "sample_p_k" if per_sample else "p_k"
    check_length(p_k.shape[-1], options.candidates(num_classes) if per_sample else None, num_classes, name)
    if p_k.ndim == 2 and len(p_k) != (rows if per_sample else num_classes):
        expected = f"({rows}, K), one row a sample" if per_sample else f"({num_classes}, K), one row a class"
        raise ValueError(f"{name} has shape {tuple(p_k.shape)}, expected {expected}")
    check_class_weight(weight_name, targets.weight, num_classes, device)
    if targets.class_counts is not None:
        if not options.counts_classes:
            raise ValueError(f"class_counts: found, but method {options.method!r} does not read them; leave them out")
        check_class_counts(targets.class_counts, num_classes, device)


def weighted_loss(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """Check logits (B, C) against their targets, and dispatch on the form of the labels; the loss, () or (B,)."""
    rows, num_classes = logits.shape
    check_targets((rows, num_classes), logits.device, targets, options)
    labels, weight, smoothing = targets.labels, targets.weight, options.label_smoothing
    at_once = smoothing == 0 or (weight is None and runs_kernels(logits, options))
    if labels.ndim == 1 and at_once and not options.over_rows:
        if labels.dtype != torch.int64:
            targets = targets._replace(labels=labels.long())
        return reduced_loss(logits, targets, options)
    by_label = changed(options, ignore_index=LEFT_OUT, reduction="none", label_smoothing=0.0, inplace=False)

    def losses(logits: Tensor, labels: Tensor, times: int) -> Tensor:
        return reduced_loss(logits, targets.with_labels(labels, times), by_label)

    columns, shares = label_columns(labels, weight, options.ignore_index, num_classes)
    total = mixed_losses(logits, columns, shares, losses)
    if smoothing:
        kept = row_weights(labels, None, options.ignore_index, num_classes) > 0
        scores = logits.to(total).where(kept.unsqueeze(1), 0.0)
        total = (1 - smoothing) * total + smoothing * _uniform_loss(scores, weight).where(kept, 0.0)
    counted = row_weights(labels, weight, options.ignore_index, num_classes)
    if options.over_rows:
        total = total * hardest_rows(total.detach(), counted > 0, options.hardest_share)
    return reduce_rows(total, counted, options.reduction)


def _uniform_loss(scores: Tensor, weight: Tensor | None) -> Tensor:
    """The cross-entropy with uniform targets, class weights in it as in PyTorch; (B,) for scores (B, C)."""
    if weight is None:
        return scores.logsumexp(dim=1) - scores.mean(dim=1)
    weight = weight.to(scores)
    return scores.logsumexp(dim=1) * weight.mean() - (scores * weight).mean(dim=1)

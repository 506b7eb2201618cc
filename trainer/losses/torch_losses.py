"""The loss of each row in plain torch, on any device and in any floating type; what the kernels are tested against."""

import torch
from torch import Tensor

from ..loss_defaults import MEMBERSHIP, METHOD_DEFAULTS, OBJECTIVE
from ..loss_options import LossOptions
from .candidates import losses_of_candidates
from .memberships import label_log_memberships
from .objective import row_loss
from .objectives import objective_losses
from .objectives.noised_topk import class_margins
from .rank_weights import log_membership_weights
from .relaxations import label_log_ranks
from .targets import Targets, over_k


def torch_losses(logits: Tensor, targets: Targets, options: LossOptions) -> Tensor:
    """The loss of each row.

    Args:
        logits: (B, C) floating.
        targets: one label a row, int64, and the weights of ranks; class weights are not looked at.
        options: the method and its options; rows whose label is `ignore_index` cost 0.

    Returns:
        (B,) float32 (float64 for float64 logits); NaN where the label is out of range or a logit is NaN.
    """
    labels, p_k = targets.labels, over_k(targets)
    kept = labels != options.ignore_index
    inside = (labels >= 0) & (labels < logits.shape[1])
    if not options.relaxed:
        return -_log_softmax_over_classes(logits, labels, kept, inside)
    if p_k.ndim == 2 and targets.sample_p_k is None:
        p_k = p_k[labels.where(inside, 0)]
    margins = None
    if options.counts_classes:
        counts = logits.new_ones(logits.shape[1]) if targets.class_counts is None else targets.class_counts
        margins = class_margins(counts, options.max_margin)[labels.where(inside, 0)]

    def losses(scores: Tensor) -> Tensor:
        k = p_k.shape[-1]
        if METHOD_DEFAULTS[options.method].kind == OBJECTIVE:
            return (objective_losses(scores, k, options, margins) * p_k.to(scores)).sum(dim=-1)
        if options.top1_mode == "sort":
            log_softmax = scores[:, 0]  # not read
        elif options.softmax_over == "candidates":
            log_softmax = scores[:, 0] - scores.logsumexp(dim=1)
        else:
            log_softmax = _log_softmax_over_classes(logits, labels, kept, inside)
        if METHOD_DEFAULTS[options.method].kind == MEMBERSHIP:
            log_p = label_log_memberships(scores, k, options)
            return row_loss(log_p, log_softmax, p_k, options, log_membership_weights)
        return row_loss(label_log_ranks(scores, k, options), log_softmax, p_k, options)

    return losses_of_candidates(logits, labels, options.candidates(logits.shape[1]), options.ignore_index, losses)


def _log_softmax_over_classes(logits: Tensor, labels: Tensor, kept: Tensor, inside: Tensor) -> Tensor:
    """The label's log-softmax, 0 for ignored rows, NaN for labels out of range."""
    scores = logits if logits.dtype == torch.float64 else logits.float()
    if not _surely_all(kept):
        scores = scores.where(kept.unsqueeze(1), 0.0)
    used = labels.where(kept & inside, -100)
    log_softmax = -torch.nn.functional.cross_entropy(scores, used, reduction="none")
    return log_softmax.where(inside | ~kept, torch.nan)


def _surely_all(kept: Tensor) -> bool:
    """Whether no row is ignored, where asking costs nothing: on a CPU, outside of a compiled graph."""
    return kept.device.type == "cpu" and not torch.compiler.is_compiling() and bool(kept.all())

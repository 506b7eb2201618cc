"""From the label's probability at each rank, or among the k best, to the loss of a row."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..loss_options import LossOptions
from .rank_weights import log_rank_weights

LogWeights = Callable[[Tensor, bool], Tensor]


def row_loss(
    log_p: Tensor, log_softmax: Tensor, p_k: Tensor, options: LossOptions, log_weights: LogWeights = log_rank_weights
) -> Tensor:
    """-log p of Petersen et al. (2022), in the log domain.

    Args:
        log_p: (B, K), log P[r, label] for the ranks r = 1..K, or log P(label among the k best) for k = 1..K.
        log_softmax: (B,), the label's log-softmax, read by the modes `sm` and `smce`.
        p_k: (K,) or (B, K).
        options: `top1_mode` and `floor` are read.
        log_weights: `log_rank_weights` or `log_membership_weights`, as `log_p` is of ranks or of memberships.

    Returns:
        (B,) losses.
    """
    p_k = p_k.to(log_p)
    top1_mode, floor = options.top1_mode, options.floor
    if top1_mode == "sort":
        return -_floored(torch.logsumexp(log_p + log_weights(p_k, False), dim=-1), floor)
    weighted = log_p + log_weights(p_k, True)
    if top1_mode == "sm":
        top1 = (log_softmax + p_k[..., 0].log()).unsqueeze(-1)
        return -_floored(torch.logsumexp(torch.cat([top1, weighted], dim=-1), dim=-1), floor)
    return _separate_top1(log_p, log_softmax, p_k, floor, log_weights(p_k, True))


def _separate_top1(log_p: Tensor, log_softmax: Tensor, p_k: Tensor, floor: float, log_weights: Tensor) -> Tensor:
    rest = p_k[..., 1:].sum(-1)
    some = rest > 0
    share = torch.where(some, rest, torch.ones_like(rest))
    shares = torch.where(some.unsqueeze(-1), log_weights - share.log().unsqueeze(-1), 0.0)
    return -p_k[..., 0] * log_softmax - rest * _floored(torch.logsumexp(log_p + shares, dim=-1), floor)


def _floored(log_p: Tensor, floor: float) -> Tensor:
    if floor == 0:
        return log_p
    lowest = log_p.new_tensor(math.log(floor))
    return torch.logaddexp(log_p + math.log1p(-2 * floor), lowest)

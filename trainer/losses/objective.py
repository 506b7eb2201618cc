"""From the label's probability at each rank to the loss of a row."""

import math

import torch
from torch import Tensor

from .options import LossOptions
from .rank_weights import log_rank_weights


def row_loss(log_ranks: Tensor, log_softmax: Tensor, p_k: Tensor, options: LossOptions) -> Tensor:
    """-log p of Petersen et al. (2022), in the log domain.

    Args:
        log_ranks: (B, K), log P[r, label] for the ranks 1..K.
        log_softmax: (B,), the label's log-softmax, read by the modes `sm` and `smce`.
        p_k: (K,) or (B, K).
        options: `top1_mode` and `floor` are read.

    Returns:
        (B,) losses.
    """
    p_k = p_k.to(log_ranks)
    top1_mode, floor = options.top1_mode, options.floor
    if top1_mode == "sort":
        return -_floored(torch.logsumexp(log_ranks + log_rank_weights(p_k, False), dim=-1), floor)
    weighted = log_ranks + log_rank_weights(p_k, True)
    if top1_mode == "sm":
        top1 = (log_softmax + p_k[..., 0].log()).unsqueeze(-1)
        return -_floored(torch.logsumexp(torch.cat([top1, weighted], dim=-1), dim=-1), floor)
    return _separate_top1(log_ranks, log_softmax, p_k, floor)


def _separate_top1(log_ranks: Tensor, log_softmax: Tensor, p_k: Tensor, floor: float) -> Tensor:
    rest = p_k[..., 1:].sum(-1)
    some = rest > 0
    share = torch.where(some, rest, torch.ones_like(rest))
    log_weights = torch.where(some.unsqueeze(-1), log_rank_weights(p_k, True) - share.log().unsqueeze(-1), 0.0)
    log_p = _floored(torch.logsumexp(log_ranks + log_weights, dim=-1), floor)
    return -p_k[..., 0] * log_softmax - rest * log_p


def _floored(log_p: Tensor, floor: float) -> Tensor:
    if floor == 0:
        return log_p
    lowest = log_p.new_tensor(math.log(floor))
    return torch.logaddexp(log_p + math.log1p(-2 * floor), lowest)

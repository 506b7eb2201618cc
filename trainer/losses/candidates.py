"""Top-m pruning: the scores of a row that enter the loss."""

from collections.abc import Callable

import torch
from torch import Tensor

_GROUP = 8


def highest_columns(logits: Tensor, m: int) -> Tensor:
    """Columns (B, m) of the m highest scores of each row, in descending order; NaN is highest.

    The m highest scores lie in the m groups whose highest scores are highest, so that most of a wide row is looked at
    once, where `topk` costs ten times as much for a score.
    """
    width = logits.shape[1] // _GROUP
    if width < 2 * m:
        return _top_columns(logits, m)
    best = logits[:, : _GROUP * width].unflatten(1, (_GROUP, width)).amax(dim=1)
    groups = highest_columns(best, m)
    tail = torch.arange(_GROUP * width, logits.shape[1], device=logits.device).expand(len(logits), -1)
    columns = torch.cat([*(groups + i * width for i in range(_GROUP)), tail], dim=1)
    return columns.gather(1, _top_columns(logits.gather(1, columns), m))


def _top_columns(scores: Tensor, m: int) -> Tensor:
    """`topk` of a few hundred columns.

    On a CPU by numpy's vectorised sort of 64-bit keys, a score above and its column below: an eighth of `topk`'s time.
    """
    if not scores.is_cpu or scores.dtype == torch.float64 or torch.compiler.is_compiling():
        top: Tensor = scores.topk(m, dim=1).indices
        return top
    bits = scores.float().view(torch.int32)
    # Negative floats order backwards as integers; after this every float orders as its integer does.
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = -ordered.long().masked_fill_(scores.isnan(), 2**31 - 1)
    keys = (keys << 32) + torch.arange(scores.shape[1])
    keys.numpy().sort(axis=1)
    return keys[:, :m] & 0xFFFFFFFF


def candidate_columns(logits: Tensor, labels: Tensor, m: int) -> Tensor:
    """Columns of the label and of the m - 1 highest other scores, in descending order.

    Args:
        logits: (B, C) floating.
        labels: (B,) int64 in 0..C-1.
        m: number of candidates, 1..C.

    Returns:
        (B, m) int64.
    """
    label = labels.unsqueeze(1)
    top = highest_columns(logits.detach(), m)
    passed = (top == label).cumsum(dim=1)[:, :-1] > 0
    return torch.cat([label, torch.where(passed, top[:, 1:], top[:, :-1])], dim=1)


def candidate_scores(logits: Tensor, columns: Tensor) -> Tensor:
    """Scores at `columns` (B, m), in float32 or float64, shifted so that the highest is 0.

    The shift is a constant to the gradient: no loss of this family changes when all scores are shifted.
    """
    scores = logits.gather(1, columns)
    if scores.dtype != torch.float64:
        scores = scores.float()
    return scores - scores.detach().amax(dim=1, keepdim=True).clamp_min(torch.finfo(scores.dtype).min)


def losses_of_candidates(
    logits: Tensor, labels: Tensor, m: int, ignore_index: int, formula: Callable[[Tensor], Tensor]
) -> Tensor:
    """The loss of each row by a formula over its candidates.

    Args:
        logits: (B, C) floating.
        labels: (B,) int64; rows whose label is `ignore_index` cost 0.
        m: number of candidates, 1..C.
        ignore_index: the label that is left out.
        formula: from scores (B, m), the label's first and not masked, the others in descending order, minus infinity
            where masked, to losses (B,).

    Returns:
        (B,); infinite where the label is masked, NaN where it is out of range or a logit is NaN.
    """
    kept = labels != ignore_index
    inside = (labels >= 0) & (labels < logits.shape[1])
    scores = candidate_scores(logits, candidate_columns(logits, labels.where(inside, 0), m))
    invalid = ~inside | scores.isnan().any(dim=1)
    if m == 1:
        invalid = invalid | logits.isnan().any(dim=1)
    masked_label = scores[:, 0] == -torch.inf
    losses = formula(scores.where((kept & ~masked_label).unsqueeze(1), 0.0))
    losses = losses - losses.detach().clamp_max(0)  # rounding
    return losses.where(~masked_label, torch.inf).where(~invalid, torch.nan).where(kept, 0.0)

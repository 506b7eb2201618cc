"""Top-m pruning: the scores of a row that enter the relaxation."""

import torch
from torch import Tensor


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
    if m == 1:
        return label
    others = logits.detach().scatter(1, label, -torch.inf).topk(m - 1, dim=1).indices
    return torch.cat([label, others], dim=1)


def candidate_scores(logits: Tensor, columns: Tensor) -> Tensor:
    """Scores at `columns` (B, m), in float32 or float64, shifted so that the highest is 0.

    The shift is a constant to the gradient: no loss of this family changes when all scores are shifted.
    """
    scores = logits.gather(1, columns)
    if scores.dtype != torch.float64:
        scores = scores.float()
    return scores - scores.detach().amax(dim=1, keepdim=True)

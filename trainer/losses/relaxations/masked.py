"""Masked classes, whose score is minus infinity: they have no probability and no gradient."""

import torch
from torch import Tensor


def finite_count(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Which scores are not masked (..., n), and how many of a row are (..., 1), in the type of the scores."""
    finite = scores != -torch.inf
    return finite, finite.sum(dim=-1, keepdim=True).to(scores.dtype)


def below(scores: Tensor, finite: Tensor, gap: float) -> Tensor:
    """A constant `gap` below the lowest score of a row that is not masked, (..., 1)."""
    return scores.detach().where(finite, torch.inf).amin(dim=-1, keepdim=True) - gap

"""The membership of one label in the top k, as the loss of a single k says it."""

import math

import torch

from headsmith.trainer.losses import topk_cross_entropy


def log_membership(scores: torch.Tensor, label: int, k: int, method: str, **options) -> torch.Tensor:
    """Of scores (n,), all of them candidates."""
    only_k = {"p_k": [0.0] * (k - 1) + [1.0], "m": None, "top1_mode": "sort"}
    return -topk_cross_entropy(scores.unsqueeze(0), torch.tensor([label]), method=method, **only_k, **options)


def memberships(scores: torch.Tensor, k: int, method: str, **options) -> list[float]:
    return [math.exp(log_membership(scores, label, k, method, **options).item()) for label in range(len(scores))]

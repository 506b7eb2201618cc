"""Top-k accuracy with its uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import binomtest

from ..trainer.accuracy import label_ranks

Ranks = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Share:
    """A share of n trials, with its 95 % Wilson score interval (Wilson 1927).

    Attributes:
        correct: Trials that counted.
        n: All trials.
        value: ``correct / n``.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    correct: int
    n: int
    value: float
    low: float
    high: float

    def percent(self) -> str:
        """The share and its interval in per cent, for people: ``58.9 % (57.3 to 60.4)``."""
        return f"{100 * self.value:.2f} % ({100 * self.low:.2f} to {100 * self.high:.2f})"


def wilson(correct: int, n: int) -> Share:
    """The share ``correct / n`` with its 95 % Wilson interval.

    Raises:
        ValueError: ``n`` is below 1 or ``correct`` is not in 0..n.
    """
    interval = binomtest(correct, n).proportion_ci(confidence_level=0.95, method="wilson")
    return Share(correct, n, correct / n, float(interval.low), float(interval.high))


def ranks(logits: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> Ranks:
    """How many classes come before the label of each row; equal scores go by class index, the lower first.

    Args:
        logits: ``(N, C)``.
        labels: ``(N,)`` integers in 0..C-1.

    Returns:
        ``(N,)`` int64. C for a row that holds NaN, whatever its label: such a row is wrong for every k.
    """
    found = label_ranks(torch.from_numpy(logits), torch.from_numpy(labels).long())
    return found.numpy()


def top_k(label_ranks: Ranks, k: int, num_classes: int) -> Share | None:
    """Top-k accuracy from the ranks of the labels; ``None`` where fewer than k classes exist."""
    if k > num_classes:
        return None
    return wilson(int((label_ranks < k).sum()), len(label_ranks))

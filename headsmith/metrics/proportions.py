"""Top-k accuracy with its uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Ranks = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

NORMAL_975 = (
    1.959963984540054  # the 97.5 % quantile of the normal distribution; scipy takes longer to import than to ask
)
_ROUNDING = 1e-9


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

    def __post_init__(self) -> None:
        """Refuse a share or an interval that is not that of the counts, which an edited file may name."""
        if not 0 <= self.correct <= self.n or self.n < 1:
            raise ValueError(f"correct: found {self.correct} of {self.n}, expected 0 to n, and n of 1 or more")
        low, high = wilson_intervals(np.array(self.correct), np.array(self.n))
        expected = {"value": self.correct / self.n, "low": float(low), "high": float(high)}
        for name, number in expected.items():
            if not abs(getattr(self, name) - number) <= _ROUNDING:
                raise ValueError(f"{name}: found {getattr(self, name)}, expected {number} for {self.correct}/{self.n}")

    def percent(self) -> str:
        """The share and its interval in per cent, for people: ``58.9 % (57.3 to 60.4)``."""
        return f"{100 * self.value:.2f} % ({100 * self.low:.2f} to {100 * self.high:.2f})"


def wilson(correct: int, n: int) -> Share:
    """The share ``correct / n`` with its 95 % Wilson interval.

    Raises:
        ValueError: ``n`` is below 1 or ``correct`` is not in 0..n.
    """
    if not 0 <= correct <= n or n < 1:
        raise ValueError(f"{correct} of {n} found, expected 0 <= correct <= n and n >= 1")
    low, high = wilson_intervals(np.array(correct), np.array(n))
    return Share(correct, n, correct / n, float(low), float(high))


def wilson_intervals(correct: np.ndarray[Any, Any], n: np.ndarray[Any, Any]) -> tuple[Floats, Floats]:
    """The ends of the 95 % Wilson interval of each share ``correct / n``; 0 and 1 where ``n`` is 0.

    Args:
        correct: Counts, of any shape.
        n: Counts of the same shape, no smaller.

    Returns:
        Lower and upper ends, float64, of that shape.
    """
    trials = np.maximum(n, 1)
    share, width = correct / trials, NORMAL_975**2 / trials
    centre = share + width / 2
    half = np.sqrt(width * (share * (1 - share) + width / 4))
    low = np.where(n > 0, (centre - half) / (1 + width), 0.0).clip(0, share)
    high = np.where(n > 0, (centre + half) / (1 + width), 1.0).clip(share, 1)
    return low, high


def top_k(label_ranks: Ranks, k: int, num_classes: int) -> Share | None:
    """Top-k accuracy from the ranks of the labels; ``None`` where fewer than k classes exist."""
    if k > num_classes:
        return None
    return wilson(int((label_ranks < k).sum()), len(label_ranks))

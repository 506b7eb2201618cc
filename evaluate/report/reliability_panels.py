"""The reliability curve of a classifier as a small panel."""

from dataclasses import dataclass

import numpy as np

from ...metrics.proportions import wilson_intervals
from ..metrics import Reliability

FEW, JOINED = 500, 3


@dataclass(frozen=True)
class Bin:
    """A bin that holds rows.

    ``share`` is its rows over those of the fullest bin, ``right_low`` and ``right_high`` are the ends of the 95 %
    Wilson interval of ``accuracy``; the rest is as in `Reliability`.
    """

    low: float
    high: float
    n: int
    share: float
    confidence: float
    accuracy: float
    right_low: float
    right_high: float


@dataclass(frozen=True)
class Panel:
    """One classifier; without bins where it gives no probabilities."""

    name: str
    ece: float
    bins: list[Bin]


def panel(name: str, curve: Reliability) -> Panel:
    """Keep the bins of a reliability curve that hold rows; of few rows three bins become one, or they tell nothing."""
    join = JOINED if curve.n.sum() < FEW and len(curve.n) % JOINED == 0 else 1
    n = curve.n.reshape(-1, join).sum(axis=1)
    known = np.maximum(n, 1)
    confidence, accuracy = (
        np.where(curve.n > 0, curve.n * mean, 0).reshape(-1, join).sum(axis=1) / known
        for mean in (curve.confidence, curve.accuracy)
    )
    ends = wilson_intervals(accuracy * n, n)
    edges = curve.edges[:-1:join], curve.edges[join::join]
    figures = np.stack([*edges, n / known.max(), confidence, accuracy, *ends], axis=1)[n > 0].tolist()
    bins = [
        Bin(low, high, count, share, sure, right, right_low, right_high)
        for count, (low, high, share, sure, right, right_low, right_high) in zip(
            n[n > 0].tolist(), figures, strict=True
        )
    ]
    return Panel(name, curve.ece, bins)

"""The reliability curve of a classifier as a small panel."""

from dataclasses import dataclass

import numpy as np

from ..metrics import Reliability

FEW, JOINED = 500, 3


@dataclass(frozen=True)
class Bin:
    """A bin that holds rows; ``share`` is its rows over those of the fullest bin, the rest as in `Reliability`."""

    low: float
    high: float
    n: int
    share: float
    confidence: float
    accuracy: float


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
    columns = zip(curve.edges[:-1:join], curve.edges[join::join], n, confidence, accuracy, strict=True)
    bins = [
        Bin(float(low), float(high), int(count), float(count / n.max()), float(sure), float(right))
        for low, high, count, sure, right in columns
        if count
    ]
    return Panel(name, curve.ece, bins)

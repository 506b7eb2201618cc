"""The reliability curve of a classifier as a small panel."""

from dataclasses import dataclass

from ..metrics import Reliability


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
    """Keep the bins of a reliability curve that hold rows."""
    columns = zip(curve.edges[:-1], curve.edges[1:], curve.n, curve.confidence, curve.accuracy, strict=True)
    bins = [
        Bin(float(low), float(high), int(n), float(n / curve.n.max()), float(confidence), float(accuracy))
        for low, high, n, confidence, accuracy in columns
        if n
    ]
    return Panel(name, curve.ece, bins)

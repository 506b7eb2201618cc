"""Which row to deploy, and how the others compare with it.

Validation chooses, within the bounds; the test split is a held-back part that chooses nothing. So the winner's accuracy
on it is that of one classifier, whose Wilson interval holds however many were compared, and so do McNemar's tests of
the others against it, by Holm over these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.paired import ALPHA, PairedDifference, holm, paired_difference
from .benchmark_record import HEAD, BenchmarkRow

Array = np.ndarray[Any, Any]
UNITS = {"latency": "ms", "size": "MB", "memory": "MB"}


@dataclass(frozen=True)
class Comparison:
    """A row beside the winner on the same test images; ``p`` is by Holm over all of them."""

    difference: PairedDifference
    p: float

    @property
    def tied(self) -> bool:
        """Whether the test images cannot tell the two apart."""
        return self.p >= ALPHA


def cost(row: BenchmarkRow, name: str) -> float | None:
    """What a row costs by the name of a bound, in its unit; ``None`` where that was not measured."""
    latency = None if row.latency is None else row.latency.p50
    return {"latency": latency, "size": row.file_mb, "memory": row.memory_mb}[name]


def excess(row: BenchmarkRow, bounds: Mapping[str, float]) -> float:
    """By which factor a row exceeds the bound that it exceeds most; at most 1 within all, infinite where unknown."""
    costs = {name: cost(row, name) for name in bounds}
    return max((float("inf") if found is None else found / bounds[name] for name, found in costs.items()), default=0.0)


def candidates(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """The rows that can be chosen: heads with figures."""
    return [row for row in rows if row.kind == HEAD and row.top1 is not None and row.val_top1 is not None]


def choose(rows: Sequence[BenchmarkRow], bounds: Mapping[str, float]) -> BenchmarkRow | None:
    """The best on validation among the measured heads within the bounds, or the one that is nearest to them.

    Between equals in top-1 decides the latency, then the size of the file, then the name.
    """
    found = candidates(rows)
    within = [row for row in found if excess(row, bounds) <= 1]
    if within:
        return min(within, key=_place)
    return min(found, key=lambda row: (excess(row, bounds), _place(row)), default=None)


def _place(row: BenchmarkRow) -> tuple[float, float, float, str]:
    share = 0.0 if row.val_top1 is None else row.val_top1.value
    latency, size = (float("inf") if (found := cost(row, name)) is None else found for name in ("latency", "size"))
    return -share, latency, size, row.name


def compared(winner: str, correct: Mapping[str, tuple[Sequence[str], Array]]) -> dict[str, Comparison]:
    """Every other row beside the winner, where both have the image.

    Args:
        winner: Its name.
        correct: For each row the ids of its test images and whether each is right.
    """
    ids, right = correct[winner]
    place = {name: number for number, name in enumerate(ids)}
    found: dict[str, PairedDifference] = {}
    for name, (own_ids, own) in correct.items():
        both = [(number, place[one]) for number, one in enumerate(own_ids) if one in place]
        if name != winner and both:
            mine, its = np.array(both).T
            found[name] = paired_difference(own[mine], right[its])
    adjusted = holm(np.array([one.p for one in found.values()]))
    return {name: Comparison(one, float(p)) for (name, one), p in zip(found.items(), adjusted, strict=True)}

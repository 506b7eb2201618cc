"""Every classifier against every other."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..metrics.row_scores import Array
from ..statistics import paired_difference, significance


@dataclass(frozen=True)
class Cell:
    """Accuracy of the row's classifier minus that of the column's, with its 95 % interval, and p by Holm."""

    difference: float
    low: float
    high: float
    p: float


def pairs(correct: Mapping[str, Array]) -> list[list[Cell | None]]:
    """The differences of all pairs.

    Args:
        correct: For each of M classifiers ``(N,)`` bool, whether it has the row right.

    Returns:
        M lines of M cells in the order given; ``None`` on the diagonal.
    """
    p_values, rows = significance(correct), list(correct.values())
    return [
        [None if one == two else _cell(rows[one], rows[two], p_values[one, two]) for two in range(len(rows))]
        for one in range(len(rows))
    ]


def _cell(first: Array, second: Array, p: float) -> Cell:
    pair = paired_difference(first, second)
    return Cell(pair.difference, pair.low, pair.high, float(p))

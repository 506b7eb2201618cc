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
    p_values = significance(correct)
    lines: list[list[Cell | None]] = []
    for row, (one, first) in enumerate(correct.items()):
        found = [None if one == other else paired_difference(first, second) for other, second in correct.items()]
        lines.append(
            [
                pair and Cell(pair.difference, pair.low, pair.high, float(p_values[row, column]))
                for column, pair in enumerate(found)
            ]
        )
    return lines

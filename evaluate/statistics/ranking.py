"""Several classifiers on the same rows: which is best, and which might be."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...export.proof.accuracy import Share, wilson
from .paired import Array, PairedDifference, paired_difference

ALPHA = 0.05


@dataclass(frozen=True)
class Standing:
    """A classifier's place in a table.

    Attributes:
        name: The classifier.
        accuracy: Its share of right rows, with its interval.
        behind_best: The best one against it; ``None`` for the best itself.
        p: McNemar's p-value of that, by Holm over the table; 1 for the best itself.
        tied: Whether it is the best, or cannot be told from it: ``p`` is at least 0.05.
    """

    name: str
    accuracy: Share
    behind_best: PairedDifference | None
    p: float
    tied: bool


def standings(correct: Mapping[str, Array]) -> list[Standing]:
    """Order classifiers by accuracy and tell which are tied with the best.

    Args:
        correct: For each classifier ``(N,)`` bool, whether it has the row right; the same rows for all.

    Returns:
        The best first, equally accurate ones in the order given.
    """
    names = sorted(correct, key=lambda name: -np.count_nonzero(correct[name]))
    behind = [paired_difference(correct[names[0]], correct[name]) for name in names[1:]]
    adjusted = [1.0, *holm(np.array([one.p for one in behind]))]
    return [
        Standing(
            name, wilson(int(np.count_nonzero(correct[name])), len(correct[name])), one, float(p), bool(p >= ALPHA)
        )
        for name, one, p in zip(names, [None, *behind], adjusted, strict=True)
    ]


def significance(correct: Mapping[str, Array]) -> Array:
    """McNemar's p-values of all pairs of M classifiers, by Holm over all pairs.

    Args:
        correct: For each classifier ``(N,)`` bool, whether it has the row right; the same rows for all.

    Returns:
        ``(M, M)`` float64, symmetric, in the order given; 1 on the diagonal.
    """
    pairs = list(combinations(range(len(correct)), 2))
    rows = list(correct.values())
    adjusted = holm(np.array([paired_difference(rows[one], rows[two]).p for one, two in pairs]))
    found = np.ones((len(rows), len(rows)))
    for (one, two), p in zip(pairs, adjusted, strict=True):
        found[one, two] = found[two, one] = p
    return found


def holm(p_values: Array) -> Array:
    """Holm's step-down adjustment of p-values (Holm 1979, Scandinavian Journal of Statistics 6).

    Args:
        p_values: ``(M,)``, M may be 0.

    Returns:
        ``(M,)`` float64; below alpha where the hypothesis falls at a family-wise error of alpha.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1)).clip(max=1)
    return adjusted

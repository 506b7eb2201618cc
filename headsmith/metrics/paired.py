"""Whether two classifiers differ on the same rows by more than chance."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import InputError
from .metric_arguments import same_rows, shares, truths, whole
from .proportions import wilson

Array = np.ndarray[Any, Any]

REPLICATES = 10_000
ALPHA = 0.05


@dataclass(frozen=True)
class PairedDifference:
    """Two classifiers on the same n rows.

    Attributes:
        n: Rows.
        both: Rows that both have right.
        only_first: Rows that the first alone has right.
        only_second: Rows that the second alone has right.
        difference: Accuracy of the first minus that of the second, -1 to 1.
        low: Lower end of its 95 % interval: method 10 of Newcombe (1998, Statistics in Medicine 17, 2635).
        high: Upper end.
        p: See `mcnemar`.
    """

    n: int
    both: int
    only_first: int
    only_second: int
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class PairedCounts:
    """McNemar's exact test of two classifiers on the same rows.

    Attributes:
        only_first: Rows that the first alone has right.
        only_second: Rows that the second alone has right.
        p: See `mcnemar`.
    """

    only_first: int
    only_second: int
    p: float


def paired_difference(first: Array, second: Array) -> PairedDifference:
    """Compare two classifiers on the same rows.

    Args:
        first: ``(N,)`` bool, whether the first has the row right; at least one row.
        second: ``(N,)`` bool, the same of the second.

    Raises:
        InputError: They are not bool, nor whole numbers that are 0 and 1 only; or not of as many rows; or of none.
    """
    first, second = _pair(first, second)
    n, both = len(first), int(np.count_nonzero(first & second))
    ahead, behind = int(np.count_nonzero(first)) - both, int(np.count_nonzero(second)) - both
    low, high = newcombe(both, ahead, behind, n - both - ahead - behind)
    p = float(mcnemar(np.array(ahead), np.array(behind)))
    return PairedDifference(n, both, ahead, behind, (ahead - behind) / n, low, high, p)


def _pair(first: Array, second: Array) -> tuple[Array, Array]:
    first, second = truths("first", first), truths("second", second)
    same_rows({"first": first, "second": second})
    if not len(first):
        raise InputError("first: 0 rows found, expected at least one")
    return first, second


def mcnemar(only_first: Array, only_second: Array) -> Array:
    """Two-sided p-values of McNemar's exact test.

    Only the rows count that one classifier alone has right: without a difference each of them is as likely to be the
    one's as the other's, a fair coin (McNemar 1947, Psychometrika 12).

    Args:
        only_first: Rows that the first alone has right, integers of any shape.
        only_second: Rows that the second alone has right, of the same shape.

    Returns:
        p, float64, of that shape; 1 where there is no such row.
    """
    from scipy.special import bdtr  # a bundle's manifest reads such tests, and opens without scipy

    p: Array = np.minimum(1.0, 2 * bdtr(np.minimum(only_first, only_second), only_first + only_second, 0.5))
    return p


def smallest_difference(n: int, alpha: float = ALPHA) -> float | None:
    """The smallest difference in accuracy that `mcnemar` can call on n rows: all of it on one classifier's side.

    Of d rows that one alone has right, all of them the same one, p is 2^(1 - d): at 0.05 it takes d = 6. Rows that the
    other alone has right raise that.

    Args:
        n: Rows.
        alpha: What p may be at most, above 0 and below 1.

    Returns:
        d / n, a share; ``None`` where there are fewer than d rows, so that nothing could be called.
    """
    fewest = 1 + math.ceil(-math.log2(alpha))
    return fewest / n if fewest <= n else None


def paired_counts(ranks: Array, others: Array, k: int) -> PairedCounts:
    """`mcnemar` for two heads' top-k accuracy on the same rows.

    Args:
        ranks: ``(N,)`` the label's rank by the first head, from 0.
        others: ``(N,)`` the same by the second.
        k: A row is right when its rank is below k.
    """
    first, second = ranks < k, others < k
    ahead, behind = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    return PairedCounts(ahead, behind, float(mcnemar(np.array(ahead), np.array(behind))))


def holm(p_values: Array) -> Array:
    """Holm's step-down adjustment of p-values (Holm 1979, Scandinavian Journal of Statistics 6).

    Args:
        p_values: ``(M,)``, or a list; M may be 0.

    Returns:
        ``(M,)`` float64; below alpha where the hypothesis falls at a family-wise error of alpha.

    Raises:
        InputError: One is not in 0..1.
    """
    p_values = shares("p_values", p_values)
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1)).clip(max=1)
    return adjusted


def newcombe(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """The 95 % interval of the difference of two paired shares, by Newcombe's method 10.

    The Wilson intervals of the two shares are combined as if by Pythagoras, corrected for their correlation phi, which
    is taken with a continuity correction where it is positive.
    """
    n = both + only_first + only_second + neither
    one, two = wilson(both + only_first, n), wilson(both + only_second, n)
    spread = one.correct * (n - one.correct) * two.correct * (n - two.correct)
    cross = both * neither - only_first * only_second
    phi = (max(cross - n / 2, 0) if cross > 0 else cross) / math.sqrt(spread) if spread else 0.0
    difference = (only_first - only_second) / n
    down = _joined(one.value - one.low, two.high - two.value, phi)
    up = _joined(one.high - one.value, two.value - two.low, phi)
    return difference - down, difference + up


def _joined(one: float, two: float, phi: float) -> float:
    return math.sqrt(max(one * one - 2 * phi * one * two + two * two, 0))


def bootstrap_difference(
    first: Array, second: Array, *, replicates: int = REPLICATES, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile interval of the difference in accuracy, rows being drawn anew in pairs (Efron 1979).

    A row counts 1, -1 or 0, so the counts of a replicate are one multinomial draw: nothing of size N is drawn.

    Args:
        first: ``(N,)`` bool, whether the first has the row right.
        second: ``(N,)`` bool, the same of the second.
        replicates: Draws, at least 1.
        seed: Of the draws.

    Returns:
        The 2.5 % and the 97.5 % quantile of first minus second.

    Raises:
        InputError: As `paired_difference`; or no draws.
    """
    first, second = _pair(first, second)
    replicates = whole("replicates", replicates, 1)
    n = len(first)
    ahead, behind = np.count_nonzero(first & ~second), np.count_nonzero(second & ~first)
    shares = np.array([ahead, behind, n - ahead - behind]) / n
    draws = np.random.default_rng(seed).multinomial(n, shares, size=replicates)
    low, high = np.quantile((draws[:, 0] - draws[:, 1]) / n, [0.025, 0.975])
    return float(low), float(high)

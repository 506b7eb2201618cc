"""Whether a classifier can be told from one that guesses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from ....metrics.chance import LEVEL, chance, guessing_p

Array = np.ndarray[Any, Any]
# A classifier that goes this part of the way from guessing to all that it can know would be found out so surely.
LIFT, POWER = 0.2, 0.99


@dataclass(frozen=True)
class Guessing:
    """Predictions against guesses that name each class as often as they do.

    Attributes:
        n: Rows.
        accuracy: Share of rows whose class the predictions name.
        chance: Share that the same predictions would name in random order.
        reach: Share that could be named at all.
        p_value: Of so many hits or more by guessing: the binomial tail.
        lift: The part of the way from ``chance`` to ``reach`` that the predictions surely go.
    """

    n: int
    accuracy: float
    chance: float
    reach: float
    p_value: float
    lift: float

    def likely(self, lift: float = LIFT) -> bool:
        """Whether they are no better than guesses, where the rows are enough to tell this lift from guessing."""
        beyond = binom.isf(LEVEL, self.n, self.chance)  # more hits than these are no guesses
        enough = binom.sf(beyond, self.n, self._expected(lift)) >= POWER
        return bool(enough and self.p_value > LEVEL)

    def below(self, lift: float) -> bool:
        """Whether predictions of this lift would hardly ever have so few hits."""
        return bool(binom.cdf(round(self.n * self.accuracy), self.n, self._expected(lift)) < LEVEL)

    def _expected(self, lift: float) -> float:
        return self.chance + lift * max(0, self.reach - self.chance)


def compare(predicted: Array, expected: Array, known: Array) -> Guessing:
    """Hold predictions against guessing.

    Args:
        predicted: ``(N,)`` int64.
        expected: ``(N,)`` int64.
        known: The classes that can be predicted at all.
    """
    n, hits, level = len(expected), int((predicted == expected).sum()), chance(predicted, expected)
    reach = float(np.isin(expected, known).mean())
    surely = float(beta.ppf(LEVEL, hits, n - hits + 1)) if hits else 0.0  # the bound of Clopper and Pearson
    lift = max(0.0, surely - level) / (reach - level) if reach > level else 0.0
    return Guessing(n, hits / n, level, reach, guessing_p(hits, n, level), lift)

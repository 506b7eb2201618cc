"""Whether a classifier can be told from one that guesses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

Array = np.ndarray[Any, Any]
LEVEL = 0.01
# A classifier that goes this part of the way from guessing to all that it can know would be found out so surely.
LIFT, POWER = 0.2, 0.99


@dataclass(frozen=True)
class Guessing:
    """Predictions against guesses that name each class as often as they do.

    Attributes:
        accuracy: Share of rows whose class the predictions name.
        chance: Share that the same predictions would name in random order.
        p_value: Of so many hits or more by guessing: the binomial tail.
        enough: Whether the rows are enough to tell even a weak classifier from guessing.
    """

    accuracy: float
    chance: float
    p_value: float
    enough: bool

    @property
    def likely(self) -> bool:
        """Whether the rows are enough, and the predictions are no better than guesses."""
        return self.enough and self.p_value > LEVEL


def compare(predicted: Array, expected: Array, known: Array) -> Guessing:
    """Hold predictions against guessing.

    Args:
        predicted: ``(N,)`` int64.
        expected: ``(N,)`` int64.
        known: The classes that can be predicted at all.
    """
    n, classes = len(expected), 1 + max(predicted.max(), expected.max())
    often = [np.bincount(labels, minlength=classes) / n for labels in (predicted, expected)]
    hits, chance = int((predicted == expected).sum()), min(1.0, float(often[0] @ often[1]))
    reach = float(np.isin(expected, known).mean())
    beyond = binom.isf(LEVEL, n, chance)  # more hits than these are no guesses
    power = binom.sf(beyond, n, chance + LIFT * max(0, reach - chance))
    return Guessing(hits / n, chance, float(binom.sf(hits - 1, n, chance)), bool(power >= POWER))

"""From values to places on a chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import Locator, LogLocator, MaxNLocator


@dataclass(frozen=True)
class Axis:
    """A scale.

    Attributes:
        low: The value at its beginning.
        high: The value at its end, above ``low``.
        log: Whether equal ratios, not equal differences, take equal space; ``low`` is above 0 then.
        ticks: Round values from ``low`` to ``high`` to be written beside it.
    """

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """Where a value is: 0 at ``low``, 1 at ``high``."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def axis(values: Sequence[float], *, log: bool = False, margin: float = 0.05) -> Axis:
    """A scale that holds all values, with some room at both ends.

    Args:
        values: At least one; above 0 where ``log`` is set.
        log: See `Axis`.
        margin: The room at either end, as a share of what the values span.
    """
    low, high = min(values), max(values)
    if log:
        room = max((high / low) ** margin, 1.1)
        low, high = low / room, high * room
    else:
        room = max((high - low) * margin, 1e-3)
        low, high = low - room, high + room
    ticks = _locator(high / low if log else 1).tick_values(low, high)
    return Axis(low, high, log, tuple(float(tick) for tick in ticks if low <= tick <= high))


def _locator(ratio: float) -> Locator:
    """Where ticks are; over a small part of a decade at equal differences also on a logarithmic scale."""
    if ratio < 5:
        return MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    return LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 1000 else (1.0,), numticks=12)

"""Accuracy against what it costs: who is on the Pareto front, and where names have room."""

from dataclasses import dataclass

import numpy as np

from ...metrics.proportions import Share
from ..metrics.row_scores import Array
from .axis import Axis, axis

HEIGHT, MARGIN = 320, 6
# Widths, in pixels, that names are arranged for: the least that a chart has on a phone, and elsewhere.
WIDTHS = {"narrow": 330, "wide": 460}
_LETTER, _LINE, _LONGEST = 6.6, 15, 26
# Where a name may stand beside its point (text-anchor, dx, dy), the best place first. Above and to the left of the
# front there is nothing; to the right of its points is the line.
_BY_THE_FRONT = (
    *(("end", -4, -11), ("end", -9, 4), ("start", 4, 17)),
    *(("start", 4, -11), ("end", -4, 17), ("start", 9, 4)),
)
_ELSEWHERE = (
    *(("start", 9, 4), ("start", 4, 17), ("end", -9, 4)),
    *(("end", -4, 17), ("start", 4, -11), ("end", -4, -11)),
)
_Box = tuple[float, float, float, float]
Spread = tuple[float, float, float]


@dataclass(frozen=True)
class ChartPoint:
    """A classifier on the chart.

    Attributes:
        name: The classifier.
        cost: What it costs, above 0.
        low: Its spread's lower end.
        high: Its spread's upper end.
        accuracy: Top-1.
        best: On the Pareto front: no other is as cheap and as accurate, and better in one of both. Costs whose spreads
            overlap are equal.
    """

    name: str
    cost: float
    low: float
    high: float
    accuracy: Share
    best: bool


@dataclass(frozen=True)
class Label:
    """A name beside its point; ``anchor`` is SVG's ``text-anchor``, ``dx`` and ``dy`` are pixels."""

    text: str
    point: ChartPoint
    anchor: str
    dx: float
    dy: float


@dataclass(frozen=True)
class Chart:
    """Accuracy against one cost.

    Attributes:
        points: The cheapest first.
        costs: The scale of costs, logarithmic.
        accuracies: The scale of top-1, with room for the intervals.
        labels: For each of `WIDTHS` the names that have room; those on the front come first.
    """

    points: list[ChartPoint]
    costs: Axis
    accuracies: Axis
    labels: dict[str, list[Label]]

    @property
    def front(self) -> list[ChartPoint]:
        """The points on the Pareto front, the cheapest first."""
        return [point for point in self.points if point.best]

    @property
    def steps(self) -> list[ChartPoint]:
        """What the line goes through: of the front the first of each accuracy, whose like cost as much as it does.

        None where the front is of one accuracy and has several points: these are equal, and there is nothing to draw.
        """
        first: dict[float, ChartPoint] = {}
        for point in self.front:
            first.setdefault(point.accuracy.value, point)
        return list(first.values()) if len(first) > 1 or len(self.front) == 1 else []

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return HEIGHT * (1 - self.accuracies.place(value))


def tradeoff(costs: dict[str, Spread], accuracies: dict[str, Share]) -> Chart | None:
    """Arrange a chart.

    Args:
        costs: Of each classifier whose cost is known, above 0, with its spread: middle, low, high.
        accuracies: Of all classifiers.

    Returns:
        The chart, or ``None`` where no cost is known.
    """
    if not costs:
        return None
    names = sorted(costs, key=lambda name: (costs[name][0], -accuracies[name].value))
    spreads = np.array([costs[name] for name in names])
    best = pareto_front(spreads[:, 1], spreads[:, 2], np.array([accuracies[name].value for name in names]))
    points = [ChartPoint(name, *costs[name], accuracies[name], bool(on)) for name, on in zip(names, best, strict=True)]
    ends = [end for point in points for end in (point.accuracy.low, point.accuracy.high)]
    chart = Chart(
        points,
        axis([end for point in points for end in (point.low, point.high)], log=True, margin=0.12),
        axis(ends, margin=0.08),
        {},
    )
    for kind, width in WIDTHS.items():
        chart.labels[kind] = _arrange(chart, width)
    return chart


def pareto_front(low: Array, high: Array, accuracies: Array) -> Array:
    """Which of N are on the Pareto front of low cost and high accuracy.

    Args:
        low: ``(N,)``, lower ends of the costs' spreads.
        high: ``(N,)``, their upper ends. One costs more than another where its spread lies above the other's.
        accuracies: ``(N,)``.

    Returns:
        ``(N,)`` bool: no other costs no more and is no less accurate, and is better in one of both.
    """
    dearer, cheaper, accuracy = low[:, None] > high, high[:, None] < low, accuracies - accuracies[:, None]
    beaten = ~cheaper & (accuracy >= 0) & (dearer | (accuracy > 0))
    front: Array = np.logical_not(np.any(beaten, axis=1))
    return front


def _arrange(chart: Chart, width: float) -> list[Label]:
    """Beside each point its name, where it would neither leave the chart nor cover another name or point."""
    centres = {point: (width * chart.costs.place(point.cost), chart.y(point.accuracy.value)) for point in chart.points}
    taken = [(x - MARGIN, y - MARGIN, x + MARGIN, y + MARGIN) for x, y in centres.values()]
    labels = []
    for point in sorted(chart.points, key=lambda point: (not point.best, -point.accuracy.value)):
        text = point.name if len(point.name) <= _LONGEST else point.name[: _LONGEST - 1] + "…"
        for anchor, dx, dy in _BY_THE_FRONT if point.best else _ELSEWHERE:
            x, y = centres[point]
            box = _box(text, anchor, x + dx, y + dy)
            if _inside(box, width) and not any(_meets(box, other) for other in taken):
                taken.append(box)
                labels.append(Label(text, point, anchor, dx, dy))
                break
    return labels


def _box(text: str, anchor: str, x: float, y: float) -> _Box:
    """Left, top, right and bottom of a text whose baseline begins, or ends, at a place."""
    length = _LETTER * len(text)
    left = x - length if anchor == "end" else x
    return left, y - 11, left + length, y - 11 + _LINE


def _inside(box: _Box, width: float) -> bool:
    return min(box[:2]) >= 0 and box[2] <= width and box[3] <= HEIGHT


def _meets(box: _Box, other: _Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]

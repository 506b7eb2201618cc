"""Who is on the Pareto front, and whether names keep off one another."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headsmith.evaluate.report.axis import axis
from headsmith.evaluate.report.tradeoff import HEIGHT, WIDTHS, pareto_front, tradeoff
from headsmith.metrics.proportions import wilson

few = st.integers(1, 6)


@given(st.lists(st.tuples(few, few), min_size=1, max_size=9))
def test_the_front_is_what_nothing_beats(models):
    def beats(one, other):
        return one[0] <= other[0] and one[1] >= other[1] and one != other

    expected = [not any(beats(other, model) for other in models) for model in models]
    costs, accuracies = np.array(models, dtype=float).T
    assert pareto_front(costs, costs, accuracies).tolist() == expected


@given(st.lists(st.tuples(few, st.integers(0, 3), few), min_size=1, max_size=9))
def test_costs_whose_spreads_overlap_are_not_ordered(models):
    def beats(one, other):
        cheaper, dearer = one[0] + one[1] < other[0], one[0] > other[0] + other[1]
        return (cheaper and one[2] >= other[2]) or (not dearer and one[2] > other[2])

    low, width, accuracies = np.array(models, dtype=float).T
    expected = [not any(beats(other, model) for other in models) for model in models]
    assert pareto_front(low, low + width, accuracies).tolist() == expected


def test_two_equal_files_are_no_front():
    """Their medians differ, since the machine was busy for a while; their spreads tell."""
    equal = {"one": (58.7, 50.0, 120.0), "two": (116.0, 55.0, 130.0)}
    chart = tradeoff(equal, dict.fromkeys(equal, wilson(70, 100)))
    assert [point.best for point in chart.points] == [True, True]
    assert chart.steps == []
    worse = tradeoff(equal | {"three": (300.0, 290.0, 310.0)}, dict.fromkeys([*equal, "three"], wilson(70, 100)))
    assert [point.name for point in worse.front] == ["one", "two"]
    better = dict.fromkeys(equal, wilson(70, 100)) | {"three": wilson(90, 100)}
    assert [point.name for point in tradeoff(equal | {"three": (300.0, 290.0, 310.0)}, better).steps] == [
        "one",
        "three",
    ]


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(0, 50)), min_size=1, max_size=12))
def test_points_and_names_stay_inside_and_apart(models):
    costs = {f"a model of some length {index}": (cost, cost / 2, cost * 2) for index, (cost, _) in enumerate(models)}
    chart = tradeoff(costs, {name: wilson(hits, 50) for name, (_, hits) in zip(costs, models, strict=True)})
    for point in chart.points:
        assert 0 < chart.costs.place(point.cost) < 1
        assert 0 < chart.y(point.accuracy.high) <= chart.y(point.accuracy.value) <= chart.y(point.accuracy.low) < HEIGHT
    for kind, width in WIDTHS.items():
        boxes = [box(label, chart, width) for label in chart.labels[kind]]
        for index, one in enumerate(boxes):
            assert one[0] >= 0
            assert one[2] <= width
            for other in boxes[:index]:
                assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def box(label, chart, width):
    """Where a browser puts a text of six pixels a letter, eleven above its baseline and three below."""
    x = width * chart.costs.place(label.point.cost) + label.dx
    y = chart.y(label.point.accuracy.value) + label.dy
    left = x - 6 * len(label.text) if label.anchor == "end" else x
    return left, y - 11, left + 6 * len(label.text), y + 3


def test_axes_have_round_ticks():
    assert axis([4.0, 80.0], log=True).ticks == (5.0, 10.0, 20.0, 50.0)
    assert axis([0.61, 0.87]).ticks == (0.6, 0.7, 0.8)
    assert axis([0.5]).place(0.5) == 0.5


def test_no_cost_no_chart():
    assert tradeoff({}, {"a": wilson(1, 2)}) is None

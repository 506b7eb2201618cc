"""Which row is chosen, within which bounds, and what is said of it."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from headsmith.core.errors import InputError
from headsmith.evaluate.benchmark.benchmark_record import BenchmarkRow
from headsmith.evaluate.benchmark.budget import Promise, in_order
from headsmith.evaluate.benchmark.decision import choose, compared, excess
from headsmith.evaluate.benchmark.options import BenchmarkOptions
from headsmith.evaluate.benchmark.plan import Entry, Unit
from headsmith.evaluate.benchmark.verdict import doubts, headline, sentence
from headsmith.evaluate.measuring.speed_figures import Latency
from headsmith.metrics.proportions import wilson


def row(name, val, ms, mb=5.0, test=50, **more):
    return BenchmarkRow(
        name=name,
        val_top1=wilson(val, 100),
        top1=wilson(test, 100),
        latency=Latency(ms, ms, ms, 5, ms),
        file_mb=mb,
        **more,
    )


ROWS = [row("slow", 90, 30.0, test=80), row("fast", 85, 5.0, mb=20.0, test=90), row("small", 80, 8.0, mb=1.0)]


@pytest.mark.parametrize(
    ("bounds", "winner"),
    [
        ({}, "slow"),  # validation decides, though another is better on test
        ({"latency": 20.0}, "fast"),
        ({"latency": 20.0, "size": 10.0}, "small"),
        ({"latency": 4.0}, "fast"),  # none: the nearest
        ({"memory": 100.0}, "slow"),  # not measured: all are as far away
    ],
)
def test_validation_chooses_within_the_bounds(bounds, winner):
    assert choose(ROWS, bounds).name == winner


def test_equals_on_validation_are_told_apart_by_what_they_cost():
    assert choose([row("a", 90, 3.0), row("b", 90, 2.0)], {}).name == "b"


def test_what_was_not_measured_or_needs_no_training_is_never_chosen():
    untrained = row("kNN", 99, 1.0, kind="baseline")
    lost = BenchmarkRow(name="lost", state="failed", reason="no weights", val_top1=wilson(99, 100))
    assert choose([untrained, lost], {}) is None
    assert choose([untrained, lost, ROWS[0]], {}).name == "slow"


def test_where_nothing_meets_a_bound_the_nearest_is_named():
    bounds = {"latency": 4.0}
    rows = [BenchmarkRow(**(vars(one) | {"within": excess(one, bounds) <= 1})) for one in ROWS]
    winner = choose(rows, bounds)
    assert sentence(winner, rows, bounds).startswith(
        "none of 3 is within --latency 4 ms; nearest: fast, with 5 ms: right for 90.0 % (82.6 to 94.5)"
    )
    assert headline(winner, rows, bounds) == "None of 3 is within --latency 4 ms; nearest: fast"
    assert [one.code for one in doubts(winner, rows, bounds)] == ["no-bound-met"]


def test_the_others_are_compared_with_the_winner_alone():
    random = np.random.default_rng(0)
    ids = [f"{number}.png" for number in range(200)]
    right = {name: random.random(200) < share for name, share in (("w", 0.9), ("a", 0.85), ("b", 0.6))}
    found = compared("w", {name: (ids, rows) for name, rows in right.items()})
    expected = []
    for name in ("a", "b"):
        table = [[int(((right["w"] == x) & (right[name] == y)).sum()) for y in (True, False)] for x in (True, False)]
        expected.append(mcnemar(table, exact=True).pvalue)
    assert [found[name].p for name in ("a", "b")] == pytest.approx(multipletests(expected, method="holm")[1])
    assert (found["a"].tied, found["b"].tied) == (True, False)
    assert found["b"].difference.difference == pytest.approx(right["b"].mean() - right["w"].mean())


def test_rows_in_another_order_or_fewer_are_paired_by_their_ids():
    ids, right = ["a", "b", "c", "d"], np.array([True, False, True, True])
    found = compared("w", {"w": (ids, right), "o": (["d", "b"], np.array([False, True]))})["o"]
    assert (found.difference.n, found.difference.only_first, found.difference.only_second) == (2, 1, 1)


def test_the_budget_goes_by_fronts_of_promise_and_time():
    found = {
        "best": Promise("k", 0.9, 0.3),
        "cheap": Promise("k", 0.7, 0.1),
        "beaten": Promise("k", 0.8, 0.4),
        "lost": Promise("k", None, 0.0, "no weights"),
    }
    units = [Unit(Entry(backbone="lite0"), base, "default", ("fp32",)) for base in ("beaten", "cheap", "best", "lost")]
    assert [unit.base for unit in in_order(units, found)] == ["lost", "best", "cheap", "beaten"]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"latency": "20ms"}, "latency", 20.0),
        ({"latency": ".5s"}, "latency", 500.0),
        ({"size": "1.5GB"}, "size", 1500.0),
        ({"memory": "500 kB"}, "memory", 0.5),
        ({"budget": "2h"}, "budget", 7200.0),
        ({"budget": "90m"}, "budget", 5400.0),
        ({"latency": 3}, "latency", 3),
    ],
)
def test_quantities_have_units(given, field, value):
    assert getattr(BenchmarkOptions(**given), field) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"latency": "20 parsecs"},
            "latency: '20 parsecs' found, expected a number above 0 with its unit",
        ),
        ({"budget": "0h"}, "budget: '0h' found"),
        ({"size": "-3MB"}, "size: '-3MB' found"),
        ({"precision": ("fp8",)}, "precision: 'fp8' found, expected one of fp32"),
        ({"precision": ()}, "precision: none found"),
        ({"image_size": (0,)}, "image_size: "),
        ({"image_size": (64, 64)}, "image_size: 64, 64 found, expected some, each once"),
        ({"jobs": 0}, "jobs: 0 found"),
        ({"keep": "some"}, "keep: 'some' found"),
        ({"max_drop": -1}, "max_drop: -1 found"),
        ({"max_drop": float("nan")}, "max_drop: nan found"),
    ],
)
def test_values_that_mean_nothing_are_refused(given, message):
    with pytest.raises(InputError) as error:
        BenchmarkOptions(**given)
    assert str(error.value).startswith(message)

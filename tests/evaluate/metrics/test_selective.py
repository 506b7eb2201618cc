"""Risk against coverage, from its definition and from closed forms."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.errors import InputError
from headsmith.evaluate.metrics import selective


def area(errors):
    """The mean over i of the mean of the first i errors."""
    return np.mean(np.cumsum(errors) / np.arange(1, len(errors) + 1))


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_without_ties_it_is_the_definition(right):
    right = np.array(right)
    confidences = np.linspace(1, 0.1, len(right))
    found = selective(confidences, right, coverages=np.arange(1, len(right) + 1) / len(right))
    np.testing.assert_allclose(found.risk, np.cumsum(~right) / np.arange(1, len(right) + 1))
    np.testing.assert_allclose(found.threshold, confidences)
    assert found.aurc == pytest.approx(area(~right))


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_ties_count_as_all_their_orders_do_on_average(case):
    areas = [
        area([not right for _, right in order])
        for order in permutations(case)
        if all(one[0] >= two[0] for one, two in pairwise(order))
    ]
    confidences, right = map(np.array, zip(*case, strict=True))
    assert selective(confidences, right).aurc == pytest.approx(np.mean(areas))


def test_the_best_possible_area():
    """With risk r and every error last, r + (1 - r) log(1 - r) (Geifman, Uziel, El-Yaniv 2019)."""
    n, r = 100_000, 0.3
    right = np.arange(n) >= r * n
    assert selective(np.arange(n), right).aurc == pytest.approx(r + (1 - r) * math.log(1 - r), abs=1e-4)


def test_confidence_that_says_nothing():
    found = selective(np.full(10, 0.5), np.arange(10) < 7)
    np.testing.assert_allclose(found.risk, 0.3)
    assert found.aurc == pytest.approx(0.3)


def test_rows_without_a_confidence_come_last():
    found = selective(np.array([np.nan, 0.1, 0.9]), np.array([False, True, True]), coverages=np.array([0.5, 1]))
    assert found.coverage.tolist() == [pytest.approx(2 / 3), 1]
    assert found.risk.tolist() == [0, pytest.approx(1 / 3)]
    assert found.threshold.tolist() == [0.1, -np.inf]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coverages": np.array([0.5, 2])}, "^coverages: 2.0 found, expected 0 to 1"),
        ({"coverages": [np.nan]}, "^coverages: nan found, expected 0 to 1"),
        ({"confidences": ["a", "b"]}, "^confidences: <U1 of shape .* found, expected numbers"),
        ({"correct": [True]}, "^correct: 1 row found, expected 2, the same rows as confidences"),
        ({"correct": [], "confidences": []}, "^correct: "),
    ],
)
def test_what_makes_no_curve(change, message):
    given = {"confidences": np.array([0.5, 0.7]), "correct": np.array([True, False])} | change
    with pytest.raises(InputError, match=message):
        selective(**given)

"""The level of chance, beside scikit-learn's guessers and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier

from headsmith.core.coded_warnings import are_worthless
from headsmith.metrics.chance import (
    chance,
    commonest,
    fewest_hits,
    fewest_rows,
    guessing_p,
    largest_share,
    like_guesses,
)

some = st.lists(st.integers(0, 4), min_size=1, max_size=30).map(np.array)


@settings(deadline=None)  # the first call of a peer may be slow
@given(some, some)
def test_the_most_frequent_class_is_scikit_learns(trained, judged):
    found = chance(commonest(trained), judged)
    if len(commonest(trained)) == 1:
        guesser = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(trained), 1)), trained)
        assert found == pytest.approx(guesser.score(np.zeros((len(judged), 1)), judged))
    assert chance(commonest(judged), judged) == pytest.approx(np.bincount(judged).max() / len(judged))


def test_equally_frequent_classes_are_named_in_turn():
    assert chance(commonest(np.array([2, 0, 1])), np.array([0, 0, 0, 1, 2, 3])) == pytest.approx(5 / 18)


@given(st.lists(st.lists(st.integers(-1, 4), min_size=3, max_size=3), min_size=1, max_size=20))
def test_rows_with_several_right_classes(sets):
    expected = max(sum(label in row for row in sets) for label in range(5)) / len(sets)
    assert largest_share(np.array(sets)) == pytest.approx(expected)


@pytest.mark.parametrize(("hits", "n", "level"), [(0, 10, 0.1), (64, 100, 0.64), (80, 100, 0.64), (10, 10, 1.0)])
def test_the_tail_is_that_of_the_binomial_test(hits, n, level):
    expected = binomtest(hits, n, level, alternative="greater").pvalue
    assert guessing_p(hits, n, level) == pytest.approx(expected)
    assert like_guesses(hits, n, level) == (expected >= 0.01)


def test_a_doubt_is_known_by_its_code():
    assert are_worthless(["few: 1 of 3 classes", "chance level: top-1"])
    assert not are_worthless(["leak: at chance level: no", "chances are good"])


@pytest.mark.parametrize(("n", "level"), [(24, 0.375), (300, 0.2), (1, 0.001), (50, 0.0)])
def test_the_fewest_hits_are_the_first_that_the_binomial_test_takes(n, level):
    found = fewest_hits(n, level)
    assert binomtest(found, n, level, alternative="greater").pvalue < 0.01
    assert found == 0 or binomtest(found - 1, n, level, alternative="greater").pvalue >= 0.01


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.001])
def test_so_few_rows_tell_nothing(level):
    rows = fewest_rows(level)
    assert fewest_hits(rows, level) == rows
    assert rows == 1 or fewest_hits(rows - 1, level) is None
    assert fewest_rows(1.0) is None
    assert fewest_rows(0.0) == 1

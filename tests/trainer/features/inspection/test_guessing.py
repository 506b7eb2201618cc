"""What chance is: held against labels that were really shuffled."""

import numpy as np
import pytest
from scipy.stats import binomtest

from headsmith.trainer.features.inspection.chance_level import LEVEL, compare

ALL = np.arange(10)


def test_chance_is_what_shuffled_labels_give():
    rng = np.random.default_rng(0)
    labels = rng.choice(4, 200, p=(0.6, 0.2, 0.1, 0.1))
    predicted = rng.choice(4, 200, p=(0.8, 0.1, 0.1, 0))
    shuffled = np.mean([(predicted == rng.permutation(labels)).mean() for _ in range(20_000)])
    assert compare(predicted, labels, ALL).chance == pytest.approx(shuffled, abs=1e-3)


@pytest.mark.parametrize("hits", [0, 3, 10, 20, 50])
def test_the_tail_is_that_of_the_binomial_test(hits):
    labels = np.arange(50) % 5
    predicted = np.where(np.arange(50) < hits, labels, (labels + 1) % 5)
    found = compare(predicted, labels, ALL)
    assert found.accuracy == hits / 50
    assert found.p_value == pytest.approx(binomtest(hits, 50, found.chance, alternative="greater").pvalue)


def test_guesses_are_seldom_taken_for_knowledge_and_knowledge_never_for_guesses():
    rng = np.random.default_rng(0)
    labels = np.arange(1000) % 10
    guesses = [compare(rng.permutation(labels), labels, ALL) for _ in range(500)]
    assert np.mean([found.likely() for found in guesses]) > 1 - 2 * LEVEL
    knows = [np.where(rng.random(1000) < 0.2, labels, rng.permutation(labels)) for _ in range(500)]
    assert not any(compare(predicted, labels, ALL).likely() for predicted in knows)


@pytest.mark.parametrize(
    ("predicted", "labels", "known"),
    [
        (np.zeros(500, int), np.arange(500) % 20 == 0, [0, 1]),  # one class named always: nothing was tried
        (np.arange(8) % 2, np.arange(8) // 4, [0, 1]),  # eight rows
        (np.zeros(500, int), np.ones(500, int), [0]),  # a class that cannot be named
    ],
)
def test_nothing_is_told_from_what_cannot_tell(predicted, labels, known):
    assert not compare(predicted, labels.astype(int), np.array(known)).likely()


@pytest.mark.parametrize("hits", [0, 3, 25, 50])
def test_what_predictions_surely_know_is_the_lower_bound_of_the_binomial_test(hits):
    labels = np.arange(50) % 5
    found = compare(np.where(np.arange(50) < hits, labels, (labels + 1) % 5), labels, ALL)
    low = binomtest(hits, 50).proportion_ci(1 - 2 * LEVEL, "exact").low
    assert found.chance + found.lift * (1 - found.chance) == pytest.approx(max(low, found.chance))
    half = found.chance + (1 - found.chance) / 2
    assert found.below(0.5) == (binomtest(hits, 50, half, alternative="less").pvalue < LEVEL)

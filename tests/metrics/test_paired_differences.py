"""Paired tests and intervals beside statsmodels, SciPy and published tables."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap
from statsmodels.stats import contingency_tables

from headsmith.core.errors import InputError
from headsmith.metrics.paired import (
    PairedCounts,
    bootstrap_difference,
    holm,
    mcnemar,
    newcombe,
    paired_counts,
    paired_difference,
    smallest_difference,
)

counts = st.tuples(*[st.integers(0, 40)] * 4).filter(any)


def arrays(both, only_first, only_second, neither):
    """Two columns of bool with these counts."""
    pairs = [(True, True)] * both + [(True, False)] * only_first + [(False, True)] * only_second
    return np.array(pairs + [(False, False)] * neither).T


@given(counts)
def test_mcnemar_is_statsmodels(table):
    both, ahead, behind, neither = table
    found = paired_difference(*arrays(*table))
    assert (found.n, found.both, found.only_first, found.only_second) == (sum(table), both, ahead, behind)
    assert found.p == pytest.approx(contingency_tables.mcnemar([[both, ahead], [behind, neither]], exact=True).pvalue)
    assert found.difference == pytest.approx((ahead - behind) / sum(table))


@given(st.integers(1, 60), st.floats(1e-6, 0.99))
def test_no_smaller_difference_can_be_called(n, alpha):
    """scipy's test of a coin that fell d times on one side: d is called, d - 1 is not."""
    found = smallest_difference(n, alpha)
    called = [d for d in range(1, n + 1) if binomtest(d, d).pvalue <= alpha]
    assert found == (called[0] / n if called else None)


def test_mcnemar_of_many_pairs_is_the_binomial_tail():
    tail = sum(math.comb(10, row) for row in range(2)) / 2**10
    found = mcnemar(np.array([9, 1, 0, 3, 5000]), np.array([1, 9, 0, 3, 5300]))
    assert found.tolist() == pytest.approx([2 * tail, 2 * tail, 1, 1, binomtest(5000, 10300).pvalue])


def test_rows_that_both_have_right_or_wrong_do_not_count():
    ranks, others = np.array([0] * 9 + [3, 0, 7]), np.array([1] * 9 + [0, 0, 7])
    assert paired_counts(ranks, others, 1) == PairedCounts(9, 1, pytest.approx(11 / 512))
    assert paired_counts(ranks, others, 5) == PairedCounts(0, 0, 1.0)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((0, 30, 0, 0), 0.8395, 1.0),
    ],
)
def test_intervals_that_newcombe_published(table, low, high):
    """Method 10 of Newcombe (1998), figures that other packages quote from that paper in their tests."""
    assert newcombe(*table) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(counts)
def test_the_interval_holds_the_difference_and_turns_with_it(table):
    both, ahead, behind, neither = table
    low, high = newcombe(*table)
    assert -1 - 1e-9 <= low <= (ahead - behind) / sum(table) <= high <= 1 + 1e-9
    assert newcombe(both, behind, ahead, neither) == (pytest.approx(-high), pytest.approx(-low))


def test_other_rows():
    with pytest.raises(ValueError, match="the same rows"):
        paired_difference(np.ones(3, dtype=bool), np.ones(2, dtype=bool))


def test_the_bootstrap_is_scipys():
    """The same interval as drawing rows; both are of 10,000 draws, so they agree within a few of their errors."""
    first, second = arrays(50, 30, 15, 25)
    found = bootstrap_difference(first, second)
    expected = bootstrap(
        (first.astype(float), second.astype(float)),
        lambda one, two, axis: (one - two).mean(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert found == (pytest.approx(expected.low, abs=0.01), pytest.approx(expected.high, abs=0.01))
    assert bootstrap_difference(first, second) == found


def test_the_bootstrap_of_equal_classifiers():
    same = np.array([True, False, True])
    assert bootstrap_difference(same, same) == (0, 0)


def test_the_bootstrap_of_many_rows_is_normal():
    """Standard error of a paired difference: sqrt((b + c - (b - c)^2 / n)) / n."""
    first, second = arrays(600_000, 60_000, 40_000, 300_000)
    low, high = bootstrap_difference(first, second)
    error = (100_000 - 20_000**2 / 1e6) ** 0.5 / 1e6
    assert low == pytest.approx(0.02 - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(0.02 + 1.96 * error, abs=0.1 * error)


def test_holm_takes_a_list():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize("ask", [paired_difference, bootstrap_difference])
@pytest.mark.parametrize("rows", [np.array([0, 2, 1]), np.array([0.1, 0.9, 1.0]), [None] * 3, np.ones((3, 1), bool)])
def test_what_is_not_true_or_false_is_told_by_name(ask, rows):
    with pytest.raises(InputError, match="^second: .* found, expected .*True or False for each row$"):
        ask(np.ones(3, bool), rows)


@pytest.mark.parametrize("ask", [paired_difference, bootstrap_difference])
def test_zeros_and_ones_count_as_the_truths_that_they_are(ask):
    first, second = arrays(50, 30, 15, 25)
    assert ask(first.astype(int), second.tolist()) == ask(first, second)
    with pytest.raises(InputError, match="second: 2 rows found, expected 3, the same rows as first"):
        ask(np.ones(3, bool), np.ones(2, bool))
    with pytest.raises(InputError, match="first: 0 rows found"):
        ask(np.ones(0, bool), np.ones(0, bool))


@pytest.mark.parametrize("replicates", [0, -1, 1.5, True])
def test_a_bootstrap_without_draws(replicates):
    with pytest.raises(InputError, match="^replicates: .* found, expected a whole number, at least 1"):
        bootstrap_difference(np.ones(3, bool), np.ones(3, bool), replicates=replicates)


@pytest.mark.parametrize("wrong", [float("nan"), 1.1, -0.1])
def test_what_is_no_p_value(wrong):
    with pytest.raises(InputError, match="^p_values: .* found, expected 0 to 1"):
        holm([0.01, wrong])

"""Tables of classifiers beside statsmodels' adjustment for many tests."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from statsmodels.stats.multitest import multipletests

from headsmith.core.errors import InputError
from headsmith.evaluate.statistics import holm, paired_difference, significance, standings


@settings(max_examples=10)  # statsmodels takes a tenth of a second
@given(st.lists(st.sampled_from([0.0, 0.01, 0.04, 0.5, 1.0]) | st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(p_values):
    found = holm(np.array(p_values))
    np.testing.assert_allclose(found, multipletests(p_values, method="holm")[1], atol=1e-12)


def test_holm_of_nothing():
    assert holm(np.array([])).tolist() == []


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    hard = random.random(2000)
    return {
        "poor": hard + random.normal(0, 0.1, 2000) < 0.5,
        "good": hard + random.normal(0, 0.1, 2000) < 0.7,
        "as good": hard + random.normal(0, 0.1, 2000) < 0.7,
        "a little worse": hard + random.normal(0, 0.1, 2000) < 0.68,
    }


def test_who_is_tied_with_the_best(table):
    found = standings(table)
    assert [one.accuracy.value for one in found] == sorted((rows.mean() for rows in table.values()), reverse=True)
    best, names = found[0], [one.name for one in found]
    assert (best.behind_best, best.p, best.tied) == (None, 1, True)
    raw = {pair: paired_difference(table[pair[0]], table[pair[1]]).p for pair in combinations(names, 2)}
    reject, adjusted, *_ = multipletests(
        list(raw.values()), alpha=0.05, method="holm"
    )  # the first three are the best's
    assert [one.p for one in found[1:]] == pytest.approx(adjusted[:3].tolist())
    assert [one.tied for one in found[1:]] == (~reject[:3]).tolist()
    assert {one.name: one.tied for one in found}["as good"]
    assert not {one.name: one.tied for one in found}["poor"]
    assert found[-1].behind_best.difference == pytest.approx(best.accuracy.value - table["poor"].mean())


def test_one_classifier_is_the_best():
    (only,) = standings({"only": np.array([True, False])})
    assert (only.accuracy.value, only.tied) == (0.5, True)


def test_equal_classifiers_stay_in_order_and_share_a_rank():
    rows = np.array([True, False])
    assert [(one.name, one.rank) for one in standings({"b": rows, "a": rows})] == [("b", 1), ("a", 1)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_ranks_are_those_of_scipy(hits):
    table = {str(place): np.arange(4) < count for place, count in enumerate(hits)}
    expected = dict(zip(table, rankdata([-count for count in hits], method="min"), strict=True))
    assert {one.name: one.rank for one in standings(table)} == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(5, 300), st.sampled_from([0.05, 0.3]))
def test_the_ranking_never_contradicts_the_matrix_of_pairs(seed, models, rows, spread):
    random = np.random.default_rng(seed)
    hard, skill = random.random(rows), 0.5 + spread * random.integers(-1, 2, models)
    table = {str(one): hard + random.normal(0, 0.2, rows) < skill[one] for one in range(models)}
    found, matrix = standings(table), significance(table)
    top = max(rows.sum() for rows in table.values())
    best = [place for place, rows in enumerate(table.values()) if rows.sum() == top]
    for one in found:
        against = matrix[best, int(one.name)]
        assert one.tied == any(against >= 0.05)
        assert one.p == against.max()
        assert one.tied or one.behind_best.difference > 0


def equally_good(random, models, rows, correlated):
    """A table of classifiers with the same accuracy, each row as hard for all, or hard for each by itself."""
    chance = random.beta(2, 1, rows) if correlated else np.full(rows, 2 / 3)
    return {str(one): random.random(rows) < chance for one in range(models)}


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize(("models", "tables"), [(2, 1000), (5, 600), (20, 300)])
def test_equal_classifiers_are_called_worse_in_one_table_of_twenty_at_most(models, tables, correlated):
    random = np.random.default_rng(models)
    wrong = sum(
        not all(one.tied for one in standings(equally_good(random, models, 2000, correlated))) for _ in range(tables)
    )
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


def test_a_worse_one_among_equal_ones_is_found_and_no_other_is_called_worse():
    """Nineteen classifiers of 70 % and one of 60 %, 2,000 rows."""
    random, found, wrong = np.random.default_rng(0), 0, 0
    for _ in range(100):
        table = {str(one): random.random(2000) < (0.6 if one == 19 else 0.7) for one in range(20)}
        tied = {one.name: one.tied for one in standings(table)}
        found += not tied.pop("19")
        wrong += not all(tied.values())
    assert found >= 99
    assert wrong <= 5 + 2 * (100 * 0.05 * 0.95) ** 0.5


def test_all_pairs(table):
    found = significance(table)
    rows = list(table.values())
    above = np.triu_indices(4, k=1)
    raw = [paired_difference(rows[one], rows[two]).p for one, two in zip(*above, strict=True)]
    np.testing.assert_allclose(found[above], multipletests(raw, method="holm")[1])
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)


def test_classifiers_of_other_rows_are_refused():
    with pytest.raises(InputError, match=r"correct\['b'\]: 5 rows found, expected 4, the same rows as correct\['a'\]"):
        standings({"a": np.ones(4, bool), "b": np.ones(5, bool)})


@pytest.mark.parametrize(
    "rows", [np.array([0, 2, 1]), np.array([0.1, 0.9, 1.0]), ["a", "b", "c"], np.ones((3, 1), bool)]
)
@pytest.mark.parametrize("ask", [standings, significance])
def test_what_is_not_true_or_false_is_told_by_name(ask, rows):
    with pytest.raises(InputError, match=r"^correct\['b'\]: .* found, expected .*True or False for each row$"):
        ask({"a": np.ones(3, bool), "b": rows})


def test_zeros_and_ones_and_lists_are_truths(table):
    numbers = {name: rows.astype(int).tolist() for name, rows in table.items()}
    assert standings(numbers) == standings(table)
    np.testing.assert_array_equal(significance(numbers), significance(table))


@pytest.mark.parametrize("ask", [standings, significance])
def test_tables_without_rows_or_of_unequal_ones(ask):
    with pytest.raises(InputError, match="correct: 0 rows found"):
        ask({"a": np.ones(0, bool), "b": np.ones(0, bool)})
    with pytest.raises(InputError, match="5 rows found, expected 4"):
        ask({"a": np.ones(4, bool), "b": np.ones(5, bool)})

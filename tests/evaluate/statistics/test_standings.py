"""Tables of classifiers beside statsmodels' adjustment for many tests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

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
    best = found[0]
    assert (best.behind_best, best.p, best.tied) == (None, 1, True)
    raw = [paired_difference(table[best.name], table[one.name]).p for one in found[1:]]
    reject, adjusted, *_ = multipletests(raw, alpha=0.05, method="holm")
    assert [one.p for one in found[1:]] == pytest.approx(adjusted.tolist())
    assert [one.tied for one in found[1:]] == (~reject).tolist()
    assert {one.name: one.tied for one in found}["as good"]
    assert not {one.name: one.tied for one in found}["poor"]
    assert found[-1].behind_best.difference == pytest.approx(best.accuracy.value - table["poor"].mean())


def test_one_classifier_is_the_best():
    (only,) = standings({"only": np.array([True, False])})
    assert (only.accuracy.value, only.tied) == (0.5, True)


def test_equal_classifiers_stay_in_order():
    rows = np.array([True, False])
    assert [one.name for one in standings({"b": rows, "a": rows})] == ["b", "a"]


def test_all_pairs(table):
    found = significance(table)
    rows = list(table.values())
    above = np.triu_indices(4, k=1)
    raw = [paired_difference(rows[one], rows[two]).p for one, two in zip(*above, strict=True)]
    np.testing.assert_allclose(found[above], multipletests(raw, method="holm")[1])
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)

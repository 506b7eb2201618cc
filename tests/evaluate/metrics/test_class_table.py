"""Per-class figures and confusions beside scikit-learn's and statsmodels'."""

import numpy as np
import pytest
from adversarial_rows import broken, few, many, rows
from hypothesis import given
from sklearn.metrics import confusion_matrix, recall_score
from statsmodels.stats.proportion import proportion_confint

from headsmith.core.errors import InputError
from headsmith.evaluate.metrics import Scorer, class_table, confused_pairs, score_rows


def test_recall_and_its_interval():
    logits, labels = many(rows=300)
    labels[labels == 7] = 6
    found = class_table(score_rows(logits, labels))
    np.testing.assert_array_equal(found.n, np.bincount(labels, minlength=20))
    there = found.n > 0
    expected = recall_score(labels, logits.argmax(axis=1), labels=range(20), average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.top1, expected)
    hits = np.round(found.top1[there] * found.n[there])
    low, high = proportion_confint(hits, found.n[there], method="wilson")
    np.testing.assert_allclose(found.top1_low[there], low, atol=1e-12)
    np.testing.assert_allclose(found.top1_high[there], high, atol=1e-12)
    assert (found.top1_low[7], found.top1_high[7]) == (0, 1)
    assert (found.topk[there] >= found.top1[there]).all()


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(rows(few, min_classes=2))
def test_the_most_frequent_mistake(case):
    logits, labels = case
    classes = range(logits.shape[1])
    wrong = confusion_matrix(labels, logits.argmax(axis=1), labels=classes)
    np.fill_diagonal(wrong, 0)
    found = class_table(score_rows(logits, labels))
    assert found.mistaken.tolist() == wrong.max(axis=1).tolist()
    assert found.mistaken_for.tolist() == np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1).tolist()


@given(rows(few, min_classes=2))
def test_pairs_in_both_directions(case):
    logits, labels = case
    wrong = confusion_matrix(labels, logits.argmax(axis=1), labels=range(logits.shape[1]))
    found = confused_pairs(score_rows(logits, labels))
    assert found.first_as_second.tolist() == wrong[found.first, found.second].tolist()
    assert found.second_as_first.tolist() == wrong[found.second, found.first].tolist()
    assert (found.first_as_second >= found.second_as_first).all()
    totals = found.first_as_second + found.second_as_first
    assert totals.tolist() == sorted(totals, reverse=True)
    assert totals.sum() == wrong.sum() - np.trace(wrong)
    assert len({frozenset(pair) for pair in zip(found.first, found.second, strict=True)}) == len(totals)


def test_the_worst_pairs_only():
    logits = np.eye(4, dtype=np.float32)[[1, 1, 0, 3, 2, 2, 0]]
    found = confused_pairs(score_rows(logits, np.array([0, 0, 1, 2, 3, 2, 3])), limit=2)
    assert found.first.tolist() == [0, 2]
    assert found.second.tolist() == [1, 3]
    assert found.first_as_second.tolist() == [2, 1]
    assert found.second_as_first.tolist() == [1, 1]


@given(rows(broken))
def test_a_row_with_nan_is_taken_for_nothing(case):
    logits, labels = case
    scores = score_rows(logits, labels)
    table, pairs = class_table(scores), confused_pairs(scores)
    mistakes = len(scores) - scores.correct().sum() - np.isnan(logits).any(axis=1).sum()
    assert pairs.first_as_second.sum() + pairs.second_as_first.sum() == mistakes
    assert table.n.sum() == len(scores)


def test_a_subset_of_the_classes():
    """Case B51: classes without rows are classes; those outside the subset are not in the table."""
    scorer = Scorer(5, classes=np.array([0, 2, 4]))
    scorer.add(np.array([[0, 9, 1, 9, 0], [0, 9, 0, 9, 1]], dtype=np.float32), np.array([4, 4]))
    found = class_table(scorer.scores())
    assert found.classes.tolist() == [0, 2, 4]
    assert found.n.tolist() == [0, 0, 2]
    assert found.mistaken_for.tolist() == [-1, -1, 2]
    assert found.top1[2] == 0.5
    assert np.isnan(found.topk).all()
    assert (found.topk_low.tolist(), found.topk_high.tolist()) == ([0, 0, 0], [1, 1, 1])


@pytest.mark.parametrize("limit", [-1, 1.5, "2"])
def test_what_is_no_limit(limit):
    scorer = Scorer(3)
    scorer.add(np.eye(3), np.array([1, 2, 0]))
    with pytest.raises(InputError, match="^limit: .* found, expected a whole number, at least 0"):
        confused_pairs(scorer.scores(), limit=limit)
    with pytest.raises(InputError, match="^k: .* found, expected a whole number, at least 1"):
        class_table(scorer.scores(), k=limit)

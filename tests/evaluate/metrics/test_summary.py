"""Figures of a whole held-out set beside scikit-learn's."""

import math

import numpy as np
import pytest
from adversarial_rows import broken, few, many, rows
from hypothesis import given
from scipy.special import log_softmax, softmax
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, top_k_accuracy_score

from headsmith.core.errors import InputError
from headsmith.evaluate.metrics import Scorer, score_rows, summarize, summarize_groups


@pytest.fixture(scope="module")
def known():
    logits, labels = many()
    return logits, labels, summarize(score_rows(logits, labels), ks=(1, 3, 5))


def test_figures_are_scikit_learns(known):
    logits, labels, found = known
    probabilities = softmax(logits.astype(np.float64), axis=1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    for k in (1, 3, 5):
        assert found.top[k].value == top_k_accuracy_score(labels, logits, k=k)
    assert found.nll == pytest.approx(log_loss(labels, probabilities), rel=1e-6)
    assert found.brier == pytest.approx(brier_score_loss(labels, probabilities, labels=range(20)), rel=1e-5)
    assert found.mean_recall == pytest.approx(balanced_accuracy_score(labels, logits.argmax(axis=1)))
    assert found.label_share == np.bincount(labels).max() / 2000
    assert found.predicted_share == np.bincount(logits.argmax(axis=1)).max() / 2000
    assert (found.n, found.nan, found.no_softmax, found.tied, found.empty_classes) == (2000, 0, 0, 0, 0)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
@given(rows(few))
def test_mean_recall_with_ties_and_empty_classes(case):
    logits, labels = case
    found = summarize(score_rows(logits, labels))
    assert found.mean_recall == pytest.approx(balanced_accuracy_score(labels, logits.argmax(axis=1)))
    assert found.empty_classes == logits.shape[1] - len(set(labels.tolist()))


@given(rows())
def test_nll_and_brier_from_their_definitions(case):
    logits, labels = case
    found = summarize(score_rows(logits, labels))
    exact, truth = logits.astype(np.float64), np.eye(logits.shape[1])[labels]
    assert found.nll == pytest.approx(-(log_softmax(exact, axis=1) * truth).sum(axis=1).mean(), rel=1e-5, abs=1e-5)
    assert found.brier == pytest.approx(((softmax(exact, axis=1) - truth) ** 2).sum(axis=1).mean(), abs=1e-5)


@given(rows(broken))
def test_whatever_comes_figures_stay_in_their_range(case):
    """Case B36: 0 <= top-1 <= top-5 <= 1, over all rows of the set."""
    logits, labels = case
    found = summarize(score_rows(logits, labels), ks=range(1, 10))
    shares = [found.top[k] for k in range(1, logits.shape[1] + 1)]
    values = [share.value for share in shares]
    assert values == sorted(values)
    assert shares[-1].correct == found.n - found.nan
    assert {share.n for share in shares} == {len(labels)}
    assert [found.top[k] for k in range(logits.shape[1] + 1, 10)] == [None] * (9 - logits.shape[1])
    assert 0 <= found.mean_recall <= 1
    assert 0 <= found.aurc <= 1
    assert found.nan == np.isnan(logits).any(axis=1).sum() <= found.no_softmax
    if found.no_softmax == found.n:
        assert (found.nll, found.brier, found.ece, found.ece_mass) == (None, None, None, None)
    else:
        assert 0 <= found.ece <= 1
        assert 0 <= found.ece_mass <= 1
        assert found.nll > -1e-6
        assert -1e-6 < found.brier < 2 + 1e-6


def test_a_row_with_nan_is_wrong_and_said():
    logits = np.array([[2, 0, 0], [0, np.nan, 0], [0, 1, 0]], dtype=np.float32)
    found = summarize(score_rows(logits, np.array([0, 1, 1])), ks=(1, 3))
    assert [found.top[k].correct for k in (1, 3)] == [2, 2]
    assert (found.n, found.nan, found.no_softmax) == (3, 1, 1)
    assert found.mean_recall == pytest.approx(3 / 4)
    own = [2 - math.log(math.exp(2) + 2), 1 - math.log(math.e + 2)]
    assert found.nll == pytest.approx(-sum(own) / 2)


def test_an_impossible_right_class():
    found = summarize(score_rows(np.array([[0, -np.inf]], dtype=np.float32), np.array([1])))
    assert (found.nll, found.brier) == (math.inf, 2)


def test_top_5_of_3_classes_does_not_apply():
    """Case B48."""
    columns = summarize(score_rows(np.eye(3, dtype=np.float32), np.arange(3))).columns()
    assert (columns["top1"], columns["top5"], columns["top5_low"]) == (1, None, None)


def test_one_class():
    found = summarize(score_rows(np.zeros((4, 1), dtype=np.float32), np.zeros(4, dtype=np.int64)))
    assert (found.top[1].value, found.top[5], found.nll, found.brier, found.ece) == (1, None, 0, 0, 0)


def test_k_below_1():
    with pytest.raises(InputError, match="ks: 0 found"):
        summarize(score_rows(np.eye(3, dtype=np.float32), np.arange(3)), ks=(0, 1))


def test_groups_are_summaries_of_their_own_rows(known):
    logits, labels, whole = known
    groups = np.array(["snow", "fog", "<b>\n", ""])[np.arange(2000) % 4]
    found = summarize_groups(score_rows(logits, labels), groups, ks=(1, 3, 5))
    assert list(found) == ["", "<b>\n", "fog", "snow"]
    for name, summary in found.items():
        own = groups == name
        assert summary == summarize(score_rows(logits[own], labels[own]), ks=(1, 3, 5))
    assert sum(one.top[1].correct for one in found.values()) == whole.top[1].correct


def test_groups_of_other_rows():
    with pytest.raises(InputError, match="groups: 2 names found, expected one for each of 3 rows"):
        summarize_groups(score_rows(np.eye(3, dtype=np.float32), np.arange(3)), ["a", "b"])


@pytest.mark.parametrize(
    ("ks", "message"),
    [(1, r"^ks: 1 found, expected several, such as \(1,\)"), ((1.5,), "^ks: 1.5 found"), ((True,), "^ks: True found")],
)
def test_what_is_no_k(ks, message):
    scorer = Scorer(3)
    scorer.add(np.eye(3), np.arange(3))
    with pytest.raises(InputError, match=message):
        summarize(scorer.scores(), ks=ks)

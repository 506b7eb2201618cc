"""What is kept of each row, beside a stable sort, SciPy's softmax and scikit-learn."""

import numpy as np
import pytest
from adversarial_rows import broken, few, many, rows
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.metrics import top_k_accuracy_score

import headsmith.evaluate.metrics.row_scores as row_scores
from headsmith.evaluate.metrics import score_rows


@given(rows(broken), st.integers(1, 9))
def test_the_k_best_are_those_of_a_stable_descending_sort(case, k):
    logits, labels = case
    found = score_rows(logits, labels, k=k)
    nan = np.isnan(logits).any(axis=1)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    assert found.topk_indices.tolist() == np.where(nan[:, None], -1, expected).tolist()
    assert found.topk_logits[~nan].tolist() == np.take_along_axis(logits, expected, axis=1)[~nan].tolist()
    assert found.answered.tolist() == (~nan).tolist()


@given(rows(broken))
def test_ranks_and_answers_agree(case):
    """Case B49: right among the k best for every k at which the label is one of the answers, and never with NaN."""
    logits, labels = case
    found = score_rows(logits, labels, k=8)
    for k in range(1, logits.shape[1] + 1):
        among = (found.topk_indices[:, :k] == labels[:, None]).any(axis=1)
        assert found.correct(k).tolist() == among.tolist()
    assert found.correct(10**6).tolist() == found.answered.tolist()


@given(rows(few, min_classes=2))
def test_a_tie_is_two_equal_highest_logits(case):
    logits, labels = case
    expected = [np.count_nonzero(row == row.max()) > 1 for row in logits]
    assert score_rows(logits, labels).tied.tolist() == expected


@given(rows())
def test_probabilities_are_scipys(case):
    logits, labels = case
    found = score_rows(logits, labels)
    exact = logits.astype(np.float64)
    share = softmax(exact, axis=1)
    np.testing.assert_allclose(found.confidences, share.max(axis=1), rtol=1e-5)
    own = log_softmax(exact, axis=1)[np.arange(len(labels)), labels]
    np.testing.assert_allclose(found.log_probabilities, own, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.sum_of_squares, (share**2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("row", [[np.nan, 0, 1], [np.inf, 0, 1], [-np.inf] * 3])
def test_where_the_softmax_is_not_defined(row):
    found = score_rows(np.array([row], dtype=np.float32), np.array([0]))
    assert np.isnan(found.confidences).all()
    assert np.isnan(found.log_probabilities).all()
    assert found.answered[0] == (not np.isnan(row).any())


def test_masked_classes_have_no_probability():
    found = score_rows(np.array([[0, -np.inf, 0]], dtype=np.float32), np.array([1]))
    assert found.topk_indices.tolist() == [[0, 2, 1]]
    assert found.topk_scores.tolist() == [[0.5, 0.5, 0]]
    assert found.log_probabilities[0] == -np.inf


def test_chunks_are_not_seen(monkeypatch):
    logits, labels = many(rows=50)
    whole = score_rows(logits, labels)
    monkeypatch.setattr(row_scores, "CHUNK", 60)
    parts = score_rows(logits, labels)
    for name in row_scores.COLUMNS:
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_float64_is_kept_and_float16_is_widened():
    logits = np.array([[1.0, 1.0 + 1e-12]])
    assert not score_rows(logits, np.array([1])).tied[0]
    assert score_rows(logits, np.array([1])).topk_indices[0, 0] == 1
    half = score_rows(logits.astype(np.float16), np.array([1]))
    assert half.tied[0]
    assert half.topk_logits.dtype == np.float32


@pytest.mark.parametrize("k", [1, 2, 5, 19])
def test_accuracy_is_scikit_learns(k):
    logits, labels = many()
    expected = top_k_accuracy_score(labels, logits, k=k, labels=range(20))
    assert score_rows(logits, labels).correct(k).mean() == pytest.approx(expected, abs=1e-12)


def test_no_row():
    found = score_rows(np.zeros((0, 3), dtype=np.float32), np.zeros(0, dtype=np.int64))
    assert (len(found), found.topk_indices.shape) == (0, (0, 3))

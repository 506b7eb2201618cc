"""Top-k accuracy and Wilson intervals against scikit-learn and the closed form."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import top_k_accuracy_score

from headsmith.metrics.proportions import top_k, wilson
from headsmith.metrics.ranks import ranks


@st.composite
def scored(draw, elements):
    rows, classes = draw(st.integers(1, 12)), draw(st.integers(2, 9))
    logits = draw(arrays(np.float32, (rows, classes), elements=elements))
    labels = draw(arrays(np.int64, rows, elements=st.integers(0, classes - 1)))
    return logits, labels


small = st.integers(-1, 1).map(np.float32)


@given(st.data(), st.integers(3, 9), st.integers(1, 12))
def test_equals_scikit_learn_without_ties(data, classes, rows):
    values = st.permutations([1e30, 7.5, 1.0, 1e-30, 0.0, -1e-30, -1.0, -7.5, -1e30])
    logits = np.array(data.draw(st.lists(values, min_size=rows, max_size=rows)), dtype=np.float32)[:, :classes]
    labels = data.draw(arrays(np.int64, rows, elements=st.integers(0, classes - 1)))
    for k in range(1, classes):
        expected = top_k_accuracy_score(labels, logits, k=k, labels=range(classes))
        assert top_k(ranks(logits, labels), k, classes).value == expected


@given(scored(small))
def test_equal_logits_put_the_lower_index_first(case):
    logits, labels = case
    order = np.argsort(-logits, axis=1, kind="stable")
    assert ranks(logits, labels).tolist() == [
        row.tolist().index(label) for row, label in zip(order, labels, strict=True)
    ]


@given(scored(small | st.just(np.float32("nan"))))
def test_accuracy_rises_with_k_and_ends_at_the_rows_without_nan(case):
    logits, labels = case
    classes = logits.shape[1]
    found = ranks(logits, labels)
    values = [top_k(found, k, classes).value for k in range(1, classes + 1)]
    assert all(0 <= low <= high <= 1 for low, high in pairwise(values))
    assert values[-1] == (~np.isnan(logits).any(1)).mean()


def test_every_k_counts_one_more():
    """Row r has its label at rank r: the accuracy rises strictly, and is 1 at k = n."""
    logits = np.tile(np.arange(6, 0, -1, dtype=np.float32), (6, 1))
    found = ranks(logits, np.arange(6))
    assert [top_k(found, k, 6).correct for k in range(1, 7)] == [1, 2, 3, 4, 5, 6]


def test_top_5_of_3_classes_does_not_apply():
    assert top_k(np.array([0, 1]), 5, 3) is None


def test_classes_without_a_sample_count_as_classes():
    logits = np.array([[0.1, 0.2, 0.3, 0.4, 0.0], [0, 0, 0, 0, 1]], dtype=np.float32)
    assert top_k(ranks(logits, np.array([0, 4])), 1, 5).correct == 1
    assert top_k(ranks(logits, np.array([0, 4])), 4, 5).correct == 2


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_wilson_interval(n, share):
    """Wilson 1927: (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z the 97.5 % quantile."""
    correct = round(share * n)
    p, z = correct / n, 1.959963984540054
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    found = wilson(correct, n)
    assert found.value == p
    assert found.low == pytest.approx(max(0, (centre - half) / (1 + z * z / n)), abs=1e-9)
    assert found.high == pytest.approx(min(1, (centre + half) / (1 + z * z / n)), abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1

"""A linear probe by cross-validation: scikit-learn's own, fold by fold, gives the same."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import LeaveOneOut, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

from headsmith.core.errors import InputError
from headsmith.metrics.transferability import ROWS, _sample, promise

ALPHAS = (1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)


def made_up(rows, width, classes, seed=0, signal=1.0):
    random = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    return random.normal(size=(rows, width)) + signal * random.normal(size=(classes, width))[labels], labels


def every(load, step):
    features, labels = load(return_X_y=True)
    return features[::step], labels[::step]


def probe(features, labels):
    scaled = StandardScaler().fit_transform(features) / np.sqrt(features.shape[1])
    scores = [cross_val_score(RidgeClassifier(alpha), scaled, labels, cv=LeaveOneOut()).mean() for alpha in ALPHAS]
    return max(scores)


@pytest.mark.parametrize(
    ("features", "labels"),
    [every(load_iris, 4), every(load_wine, 5), made_up(42, 80, 6, signal=0.3), made_up(25, 5, 2)],
    ids=["iris", "wine", "more columns than rows", "two classes"],
)
def test_it_is_scikit_learns_ridge_classifier_left_one_out(features, labels):
    assert promise(features, labels) == probe(features, labels)


def test_the_unit_of_a_column_and_the_numbers_of_classes_do_not_matter():
    features, labels = made_up(90, 20, 5, signal=0.4)
    expected = promise(features, labels)
    random = np.random.default_rng(1)
    assert 0.3 < expected < 1
    assert promise(features * random.uniform(0.1, 10, 20) + random.normal(size=20), labels) == expected
    assert promise(features[:, random.permutation(20)], labels) == expected
    assert promise(features, np.array([40, -7, 3, 99, 12])[labels]) == expected


def test_better_features_promise_more():
    scores = [promise(*made_up(300, 30, 10, signal=signal)) for signal in (0, 0.2, 0.5, 1.5)]
    assert scores == sorted(scores)
    assert scores[0] < 0.2
    assert scores[-1] > 0.95


def test_features_that_say_nothing_promise_no_more_than_chance():
    assert promise(np.ones((100, 8)), np.arange(100) % 4) <= 0.25


def test_of_many_rows_a_sample_tells_how_a_probe_does_on_the_others():
    """Within three standard errors of 500 rows."""
    features, labels = load_digits(return_X_y=True)
    scores = [promise(features, labels, seed) for seed in range(3)]
    whole = promise(np.float16(features), labels, 0)
    assert whole == scores[0] == promise(features, labels, 0)
    assert len(set(scores)) > 1
    x_train, x_test, y_train, y_test = train_test_split(features, labels, train_size=ROWS, random_state=0)
    accuracy = RidgeClassifier().fit(x_train, y_train).score(x_test, y_test)
    assert abs(np.mean(scores) - accuracy) < 3 * np.sqrt(accuracy * (1 - accuracy) / ROWS)


@pytest.mark.parametrize(
    ("counts", "rows", "classes"),
    [
        ([300, 100, 100], 500, 3),
        ([3000, 1000, 1], 500, 2),
        ([5, 3, 1, 1], 8, 2),
        ([3] * 1000, 500, 250),
        ([1, 1], 0, 0),
    ],
)
def test_a_sample_keeps_the_share_of_each_class(counts, rows, classes):
    labels = np.repeat(np.arange(len(counts)), counts)
    taken = labels[_sample(labels, 0)]
    found, often = np.unique(taken, return_counts=True)
    assert (len(taken), len(found)) == (rows, classes)
    assert all(often >= 2)
    share = np.array(counts)[found] / max(1, np.array(counts)[found].sum())
    np.testing.assert_allclose(often / max(1, len(taken)), share, atol=0.01)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (
            np.zeros((3, 2)),
            np.array([0, 0, 1]),
            "features: 1 class with two rows or more found, expected at least two",
        ),
        (np.zeros((2, 2)), np.array([0, 1]), "features: 0 classes with two rows"),
        (np.zeros((0, 2)), np.zeros(0, int), "features: 0 classes with two rows"),
        (np.full((4, 2), np.nan), np.array([0, 0, 1, 1]), "features: NaN or infinite values found"),
    ],
)
def test_rows_that_cannot_be_scored(features, labels, message):
    with pytest.raises(InputError, match=f"^{message}"):
        promise(features, labels)

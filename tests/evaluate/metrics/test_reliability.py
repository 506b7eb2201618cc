"""The reliability curve beside scikit-learn's, and expected calibration errors that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from headsmith.core.errors import InputError
from headsmith.evaluate.metrics import reliability

confidence = st.sampled_from([0.0, 0.2, 0.25, 0.5, 1.0]) | st.floats(0, 1)
pairs = st.lists(st.tuples(confidence, st.booleans()), min_size=1, max_size=40)


def check(found, confidences, correct, strategy):
    accuracy, mean = calibration_curve(correct, confidences, pos_label=True, n_bins=len(found.n), strategy=strategy)
    there = found.n > 0
    np.testing.assert_allclose(found.accuracy[there], accuracy)
    np.testing.assert_allclose(found.confidence[there], mean)
    assert np.isnan(found.accuracy[~there]).all()
    assert found.n.sum() == len(correct)
    assert found.ece == pytest.approx((found.n[there] * np.abs(accuracy - mean)).sum() / len(correct))


@given(pairs, st.integers(1, 20))
def test_bins_of_equal_width_are_scikit_learns(case, bins):
    confidences, correct = map(np.array, zip(*case, strict=True))
    check(reliability(confidences, correct, bins=bins), confidences, correct, "uniform")


@pytest.mark.parametrize("bins", [1, 2, 7, 15])
def test_bins_of_equal_mass_are_scikit_learns(bins):
    """998 rows, so that no quantile falls on a row, where rounding would decide."""
    random = np.random.default_rng(bins)
    confidences = random.random(998) ** 0.2
    correct = random.random(998) < confidences
    check(reliability(confidences, correct, bins=bins, equal="mass"), confidences, correct, "quantile")


@given(pairs, st.integers(1, 20))
def test_equal_confidences_share_a_bin_of_equal_mass(case, bins):
    confidences, correct = map(np.array, zip(*case, strict=True))
    found = reliability(confidences, correct, bins=bins, equal="mass")
    shuffled = np.random.default_rng(0).permutation(len(case))
    again = reliability(confidences[shuffled], correct[shuffled], bins=bins, equal="mass")
    assert found.n.tolist() == again.n.tolist()
    assert found.ece == pytest.approx(again.ece)
    assert found.n.sum() == len(case)


def test_errors_by_hand():
    """Two bins: of four rows at 0.8 three are right, both rows at 0.3 are wrong: (4 * 0.05 + 2 * 0.3) / 6."""
    confidences = np.array([0.8, 0.8, 0.8, 0.8, 0.3, 0.3])
    correct = np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    for equal in ("width", "mass"):
        assert reliability(confidences, correct, bins=2, equal=equal).ece == pytest.approx(0.8 / 6)


def test_a_calibrated_classifier_has_no_error():
    confidences = np.repeat([0.25, 0.5, 0.75, 1.0], 4)
    correct = np.arange(16) % 4 < confidences * 4
    assert reliability(confidences, correct).ece == pytest.approx(0)


def test_bins_of_equal_mass_hold_as_many_rows_each():
    confidences = np.random.default_rng(0).random(1500).astype(np.float32) ** 4
    assert reliability(confidences, confidences > 0.5, equal="mass").n.tolist() == [100] * 15


def test_rows_without_a_confidence_are_left_out():
    found = reliability(np.array([0.5, np.nan]), np.array([True, False]), bins=1)
    assert (found.n.tolist(), found.ece) == ([1], 0.5)
    nothing = reliability(np.array([np.nan]), np.array([False]), equal="mass")
    assert nothing.n.sum() == 0
    assert np.isnan(nothing.ece)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"equal": "mas"}, "^equal: 'mas' found, expected one of width, mass; did you mean mass"),
        ({"confidences": np.array([0.5, 1.5])}, "^confidences: 1.5 found, expected 0 to 1"),
        ({"confidences": [-0.1, 0.5]}, "^confidences: -0.1 found, expected 0 to 1"),
        ({"confidences": [0.5]}, "^correct: 2 rows found, expected 1, the same rows as confidences"),
        ({"correct": np.array([0.5, 1])}, "^correct: float64 found, expected bool"),
        ({"bins": 0}, "^bins: 0 found, expected a whole number, at least 1"),
        ({"bins": 1.5}, "^bins: 1.5 found, expected a whole number, at least 1"),
    ],
)
def test_what_makes_no_curve(change, message):
    given = {"confidences": np.array([0.5, 0.7]), "correct": np.array([True, False])} | change
    with pytest.raises(InputError, match=message):
        reliability(**given)

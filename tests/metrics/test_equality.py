"""What is equal, and that NaN and infinity never are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headsmith.metrics.equality import Difference, difference, finite_rows

BAD = [np.nan, np.inf, -np.inf]


def test_equal():
    one = np.array([[1.0, 2.0], [3.0, -4.0]])
    found = difference(one, one)
    assert found == Difference(rows=2, entries=4)
    assert found.within(0.0)


def test_how_far():
    found = difference(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.5], [1.0, 4.0]]))
    assert (found.largest, found.total, found.mean) == (2.0, 2.5, 0.625)
    assert found.within(2.0)
    assert not found.within(1.999)
    assert not found.within(np.nan)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
def test_what_is_not_finite_equals_nothing_itself_included(value, sides):
    pair = [np.array([[0.0, 1.0], [2.0, 3.0]]) for _ in sides]
    for array, bad in zip(pair, sides, strict=True):
        array[1, 0] = value if bad else array[1, 0]
    found = difference(*pair)
    assert (found.not_finite, found.entries, found.largest) == (1, 2, 0.0)
    assert not found.within(np.inf)


def test_integers_are_compared_exactly():
    assert difference(np.array([2**53 - 1]), np.array([2**53 - 3])).largest == 2


@pytest.mark.parametrize(
    "other", [np.zeros((2, 2), np.float32), np.zeros((1, 3), np.float32), np.zeros((2, 3)), np.zeros((2, 3, 1))]
)
def test_another_shape_or_dtype_is_not_equal(other):
    found = difference(np.zeros((2, 3), np.float32), other)
    assert "instead of float32 (2, 3)" in found.shapes
    assert not found.within(np.inf)
    assert not (found + difference(other, other)).within(np.inf)


@given(
    st.lists(
        arrays(np.float64, (3, 2), elements=st.floats(-5, 5) | st.sampled_from(BAD)), min_size=2, max_size=6
    ).filter(lambda found: len(found) % 2 == 0)
)
def test_parts_add_up_to_the_whole(found):
    pairs = list(zip(found[::2], found[1::2], strict=True))
    total = sum((difference(*pair) for pair in pairs), start=Difference())
    whole = difference(*(np.concatenate(side) for side in zip(*pairs, strict=True)))
    assert (total.rows, total.not_finite, total.entries) == (whole.rows, whole.not_finite, whole.entries)
    assert total.largest == whole.largest
    assert total.total == pytest.approx(whole.total)
    clean = all(np.isfinite(array).all() for array in found)
    assert total.within(10.0) == clean


def test_rows_over_several_arrays():
    one, two = np.zeros((3, 2)), np.zeros((3, 4, 1), np.float32)
    one[0, 1], two[2, 3, 0] = np.nan, np.inf
    assert finite_rows(one, None, two, np.zeros((3, 1), np.int64)).tolist() == [False, True, False]

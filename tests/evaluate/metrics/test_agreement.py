import numpy as np

from headsmith.evaluate.metrics import agreement, score_rows


def test_half_precision_makes_ties():
    """Case B45: 20.001, 20.002, 20.003 are all 20.0 in float16, and the first class is answered, not the last."""
    logits, labels = np.array([[20.001, 20.002, 20.003]], dtype=np.float32), np.array([2])
    whole, half = score_rows(logits, labels), score_rows(logits.astype(np.float16), labels)
    assert (whole.tied.sum(), half.tied.sum()) == (0, 1)
    for one, two in ((whole, half), (half, whole)):
        found = agreement(one, two)
        assert (found.equal, found.tie, found.different) == (0, 1, 0)


def test_flips_and_their_margins():
    """Case B52: the rows whose first answer changed; none for two equal runs."""
    one = np.array([[3, 1, 0], [0, 2, 1.5], [1, 0, 0], [np.nan, 0, 0], [np.nan, 1, 0]], dtype=np.float32)
    two = np.array([[3, 1, 0], [0, 2, 2.25], [0, 4, 0], [np.nan, 1, 0], [0, 1, 0]], dtype=np.float32)
    labels = np.zeros(5, dtype=np.int64)
    first, second = score_rows(one, labels), score_rows(two, labels)
    found = agreement(first, second)
    assert (found.equal, found.tie, found.different) == (1, 0, 4)
    assert found.flips.tolist() == [1, 2, 3, 4]  # NaN is equal to nothing, not even to NaN
    assert found.margins[:2].tolist() == [[0.5, 0.25], [1, 4]]
    answered = first[np.arange(3)]
    same = agreement(answered, answered)
    assert (same.equal, same.flips.tolist(), same.margins.shape) == (3, [], (0, 2))


def test_a_single_class():
    scores = score_rows(np.zeros((2, 1), dtype=np.float32), np.zeros(2, dtype=np.int64))
    assert agreement(scores, scores).equal == 2

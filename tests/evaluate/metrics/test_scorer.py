"""Batches, class subsets, several right classes, rows without one."""

import tracemalloc

import numpy as np
import pytest
import torch
from adversarial_rows import broken, few, many, rows
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.errors import InputError
from headsmith.evaluate.metrics import Scorer, right_classes, score_rows, summarize
from headsmith.evaluate.metrics.row_scores import COLUMNS


def scored(logits, labels, **options):
    scorer = Scorer(np.shape(logits)[1], **options)
    scorer.add(np.asarray(logits, dtype=np.float32), np.asarray(labels))
    return scorer


@given(rows(broken), st.integers(1, 5))
def test_nothing_depends_on_the_batches(case, size):
    logits, labels = case
    scorer = Scorer(logits.shape[1])
    for start in range(0, len(labels), size):
        scorer.add(logits[start : start + size], labels[start : start + size])
    found, expected = scorer.scores(), score_rows(logits, labels)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert scorer.rows.tolist() == list(range(len(labels)))


def test_logits_are_not_kept():
    logits, labels = many(rows=500, classes=1000)
    scorer = Scorer(1000)
    scorer.add(logits, labels)
    tracemalloc.start()
    for _ in range(10):
        scorer.add(logits, labels)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 5000 * 120


def test_a_subset_of_the_classes():
    """Case B13: among all classes the answer is wrong, among those of the held-out set it is right."""
    logits, labels = [[9, 1, 0, 2, 0]], [3]
    everything = summarize(scored(logits, labels).scores(), ks=(1,)).columns()
    subset = summarize(scored(logits, labels, classes=np.array([1, 3])).scores(), ks=(1,)).columns()
    assert (everything["top1"], subset["top1_of_2"]) == (0, 1)
    assert not everything.keys() & subset.keys()


@given(rows(broken, min_classes=3), st.data())
def test_a_subset_is_the_whole_without_the_other_columns(case, data):
    logits, _ = case
    classes = np.array(sorted(data.draw(st.sets(st.integers(0, logits.shape[1] - 1), min_size=1))))
    labels = data.draw(st.lists(st.integers(0, len(classes) - 1), min_size=len(logits), max_size=len(logits)))
    found = scored(logits, classes[labels], classes=classes).scores()
    expected = score_rows(logits[:, classes], np.array(labels))
    assert found.ranks.tolist() == expected.ranks.tolist()
    assert found.labels.tolist() == classes[labels].tolist()
    known = expected.answered
    assert found.topk_indices[known].tolist() == classes[expected.topk_indices[known]].tolist()
    np.testing.assert_allclose(found.topk_scores, expected.topk_scores, rtol=1e-6)


@given(rows(few, min_classes=2), st.data())
def test_any_of_several_right_classes_is_right(case, data):
    logits, _ = case
    classes = logits.shape[1]
    sets = [data.draw(st.sets(st.integers(0, classes - 1))) for _ in logits]
    scorer = scored(logits, right_classes([data.draw(st.permutations(sorted(right))) for right in sets]))
    order = np.argsort(-logits, axis=1, kind="stable")
    expected = [min(order[row].tolist().index(one) for one in right) for row, right in enumerate(sets) if right]
    assert scorer.rows.tolist() == [row for row, right in enumerate(sets) if right]
    assert scorer.seen == len(sets)
    if expected:
        assert scorer.scores().ranks.tolist() == expected


def test_an_empty_batch():
    scorer = scored(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    scorer.add(np.eye(3, dtype=np.float32), np.arange(3))
    assert (scorer.seen, len(scorer.scores())) == (3, 3)
    assert right_classes([]).shape == (0, 1)


def test_figures_that_need_one_right_class_are_left_out_where_there_are_several():
    found = summarize(scored([[3, 1, 0], [0, 1, 2]], right_classes([[1, 0], [1]])).scores(), ks=(1, 2))
    assert [found.top[k].correct for k in (1, 2)] == [1, 2]
    assert (found.nll, found.brier, found.mean_recall, found.label_share) == (None, None, None, None)
    assert found.ece is not None


def test_rows_without_a_right_class_are_left_out_and_counted():
    """Case B47: the last of four rows is ignored; top-4 of 4 classes is 1, one first answer of three is right."""
    logits = np.eye(4)[[3, 0, 0, 0]]
    scorer = scored(logits, [3, 2, 1, -1])
    found = summarize(scorer.scores(), ks=(1, 4))
    assert (found.n, scorer.seen) == (3, 4)
    assert (found.top[1].value, found.top[4].value) == (pytest.approx(1 / 3), 1)
    assert scorer.rows.tolist() == [0, 1, 2]


def test_no_row_has_a_right_class():
    with pytest.raises(InputError, match="none of 2 rows has a right class"):
        scored([[0, 1], [1, 0]], [-1, -1]).scores()
    with pytest.raises(InputError, match="none of 0 rows"):
        Scorer(3).scores()


def test_labels_beyond_the_outputs():
    """Case B50."""
    scorer = Scorer(5)
    scorer.add(np.zeros((2, 5), dtype=np.float32), np.array([0, 4]))
    with pytest.raises(InputError, match=r"labels: 269 found in row 3, expected one of 0\.\.4"):
        scorer.add(np.zeros((2, 5), dtype=np.float32), np.array([0, 269]))
    with pytest.raises(InputError, match="labels: -2 found in row 2"):
        scorer.add(np.zeros((1, 5), dtype=np.float32), np.array([-2]))


def test_a_label_outside_the_subset():
    with pytest.raises(InputError, match="labels: 0 found in row 1, expected one of the 2 classes of the subset"):
        scored([[1, 2, 3]] * 2, [2, 0], classes=np.array([1, 2]))


@pytest.mark.parametrize("classes", [[], [-1, 2], [3]])
def test_a_subset_of_other_classes(classes):
    with pytest.raises(InputError, match=r"class subset: .* expected some of 0\.\.2"):
        Scorer(3, classes=np.array(classes, dtype=np.int64))


@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (2,)])
def test_logits_of_another_shape(shape):
    with pytest.raises(InputError, match=r"logits: shape .* expected \(2, 5\)"):
        Scorer(5).add(np.zeros(shape, dtype=np.float32), np.array([0, 1]))


@pytest.mark.parametrize("dtype", [np.float32, bool, str])
def test_labels_that_are_no_whole_numbers(dtype):
    with pytest.raises(InputError, match=r"labels: .* found, expected whole numbers"):
        Scorer(3).add(np.zeros((2, 3), np.float32), np.array([0, 1]).astype(dtype))


@pytest.mark.parametrize("classes", [[0, 0, 1], np.array([1, 1])])
def test_a_class_twice_in_a_subset(classes):
    with pytest.raises(InputError, match="class subset: .* found, expected each class once"):
        Scorer(3, classes=classes)


@pytest.mark.parametrize("change", [{"num_logits": 0}, {"num_logits": 2.5}, {"num_logits": 3, "k": 0}])
def test_what_is_no_number_of_logits_or_answers(change):
    with pytest.raises(InputError, match="found, expected a whole number, at least 1"):
        Scorer(**change)


@pytest.mark.parametrize("form", [np.ndarray.tolist, torch.from_numpy])
def test_lists_and_tensors_are_scored_as_arrays(form):
    logits, labels = np.array([[0.0, 1, 2], [3, 1, 0]]), np.array([1, 0])
    scorer = Scorer(3)
    scorer.add(form(logits), form(labels))
    assert scorer.scores().ranks.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[0.0, 1, 2]], [0, 1], r"^logits: shape \(1, 3\) found, expected \(2, 3\)"),
        ([[0.0, 1], [1, 2, 3]], [0, 1], "^logits: no array can be made of it"),
        ([["a", "b", "c"]], [0], "^logits: <U1 found, expected floating numbers"),
        (torch.zeros(1, 3, requires_grad=True), [0], "^logits: no array can be made of it"),
        ([[0.0, 1, 2]], 0, r"^labels: shape \(\) found"),
    ],
)
def test_batches_that_are_none(logits, labels, message):
    with pytest.raises(InputError, match=message):
        Scorer(3).add(logits, labels)

"""Parity: what counts as a flip, what is excused, what fails."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax

from headsmith.core.records import to_json
from headsmith.export.parity.answer_comparison import Parity, follows_logits
from headsmith.export.runtime import Outputs


def outputs(logits):
    logits = np.array(logits, dtype=np.float32)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    with np.errstate(invalid="ignore"):  # rows with infinity
        scores = softmax(logits, axis=1)
    return Outputs(logits, np.take_along_axis(scores, order, axis=1), order)


LABELS = [f"class {index}" for index in range(9)]
TOLERANCE = 1e-3


def compare(reference, candidate, tolerance=TOLERANCE, **options):
    parity = Parity("model.onnx", LABELS, tolerance, **options)
    parity.add([f"img{row}" for row in range(len(reference))], outputs(reference), outputs(candidate))
    parity.add_batch_size(outputs(reference), outputs(candidate))
    return parity.report()


BASE = [[6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]


def changed(row, column, value):
    logits = [list(values) for values in BASE]
    logits[row][column] = value
    return logits


def test_equal_answers_pass():
    report = compare(BASE, BASE)
    assert report.passed
    assert (report.n, report.equal_top1, report.equal_topk, report.flips) == (2, 2, 2, ())
    assert report.max_abs_difference == report.mean_abs_difference == 0


def test_differences_are_counted_in_logits():
    report = compare(BASE, changed(0, 5, 1.0005))
    assert report.max_abs_difference == pytest.approx(0.0005, abs=1e-6)
    assert report.mean_abs_difference == pytest.approx(0.0005 / 12, abs=1e-7)
    assert report.batches == {2: pytest.approx(0.0005, abs=1e-6)}
    assert report.passed


def test_a_flip_of_the_best_class_fails_and_is_listed():
    report = compare(BASE, changed(0, 1, 6.5))
    (flip,) = report.flips
    assert (flip.id, flip.kind, flip.reference, flip.candidate) == ("img0", "top1", ("class 0",), ("class 1",))
    assert (flip.margin, flip.verdict) == (1.0, "different")
    assert (report.equal_top1, report.equal_topk) == (1, 2)
    assert not report.passed
    assert "img0 (margin 1)" in report.failure()


def test_a_flip_of_the_top_5_set_fails():
    report = compare(BASE, changed(0, 5, 2.5))
    (flip,) = report.flips
    assert (flip.kind, flip.reference, flip.candidate, flip.margin) == ("topk", ("class 4",), ("class 5",), 1.0)
    assert (report.equal_top1, report.equal_topk) == (2, 1)
    assert not report.passed


def test_order_within_the_top_5_is_no_flip():
    report = compare(changed(0, 2, 4.9999), changed(0, 2, 5.0001))
    assert report.flips == ()
    assert report.passed


def test_a_tie_is_excused():
    report = compare(changed(0, 1, 6.0), changed(0, 1, 6.00001))
    (flip,) = report.flips
    assert (flip.margin, flip.verdict) == (0.0, "tie")
    assert report.passed
    assert report.flipped == 1


def test_a_margin_within_tolerance_is_excused_and_stated():
    reference, candidate = changed(0, 1, 5.9996), changed(0, 1, 6.0001)
    report = compare(reference, candidate)
    assert report.flips[0].verdict == "within tolerance"
    assert report.flips[0].margin == pytest.approx(0.0004, abs=1e-6)
    assert report.passed
    assert not compare(reference, candidate, tolerance=1e-4).passed


def test_a_large_difference_fails_without_any_flip():
    """A file with other weights may happen to name the same classes of three images."""
    report = compare(BASE, [[value * 2 for value in row] for row in BASE])
    assert report.flips == ()
    assert not report.passed


def test_the_allowed_difference_grows_with_the_logits():
    reference = [[10000.0, 1.0]]
    assert compare(reference, [[10000.5, 1.0]]).passed
    assert not compare([[1.0, 0.0]], [[1.5, 0.0]]).passed


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_fails(value, exact):
    report = compare(BASE, changed(1, 0, value), exact=exact)
    assert report.not_finite == 2  # once in each comparison
    assert not report.passed
    assert "largest difference NaN or infinite" in report.failure() or not exact
    assert "of 4 answers, all batch sizes together, 2 have NaN or infinite outputs" in report.failure()


BAD = [np.nan, np.inf, -np.inf]


def damaged(which, value, row=0):
    """The right answer to `BASE`, one entry of one output broken."""
    answer = outputs(BASE)
    answer = answer._replace(probabilities=softmax(answer.logits, axis=1))
    field = getattr(answer, which).copy()
    field[row, -1] = value
    return answer._replace(**{which: field})


def sound():
    answer = outputs(BASE)
    return answer._replace(probabilities=softmax(answer.logits, axis=1))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("which", ["logits", "topk_scores", "probabilities"])
@pytest.mark.parametrize("swapped", [False, True])
def test_one_bad_number_in_any_output_of_either_side(which, value, exact, swapped):
    sides = [sound(), damaged(which, value)]
    parity = Parity("model.onnx", LABELS, TOLERANCE, exact=exact)
    parity.add(["a", "b"], *(reversed(sides) if swapped else sides))
    report = parity.report()
    assert report.not_finite == 1
    assert not report.passed


@pytest.mark.parametrize("which", ["logits", "topk_scores", "probabilities"])
def test_what_is_not_finite_at_a_further_batch_size_alone(which):
    """`max(old, nan)` is old: a file that answered NaN to one image alone passed."""
    parity = Parity("model.onnx", LABELS, TOLERANCE)
    parity.add(["a", "b"], sound(), sound())
    assert parity.report().passed
    parity.add_batch_size(sound().rows([0]), damaged(which, np.nan).rows([0]))
    assert parity.report().not_finite == 1
    assert not parity.report().passed


@pytest.mark.parametrize(
    ("which", "value"), [("topk_scores", 0.5), ("probabilities", 0.5), ("topk_indices", 0), ("topk_indices", 99)]
)
def test_a_wrong_output_at_a_further_batch_size_alone(which, value):
    parity = Parity("model.onnx", LABELS, TOLERANCE)
    parity.add(["a", "b"], sound(), sound())
    parity.add_batch_size(sound(), damaged(which, value, row=1))
    assert parity.report().inconsistent == 1
    assert not parity.report().passed


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found._replace(probabilities=None),
        lambda found: found._replace(topk_scores=found.topk_scores[:, :4]),
        lambda found: found._replace(topk_indices=found.topk_indices.astype(np.float32)),
        lambda found: found.rows(slice(0, 1)),
        lambda found: found._replace(logits=found.logits[:, :5]),
    ],
)
def test_outputs_of_another_shape(change):
    parity = Parity("model.onnx", LABELS, TOLERANCE)
    parity.add(["a", "b"], sound(), change(sound()))
    report = parity.report()
    assert report.shapes
    assert not report.passed
    assert report.shapes[0] in report.failure()


def test_logits_that_float16_makes_equal():
    """20.001, 20.002 and 20.003 are all 20.0 in half precision: the best class moves from 2 to 0."""
    logits = [[20.001, 20.002, 20.003]]
    report = compare(logits, np.array(logits, dtype=np.float16), exact=False)
    (flip,) = report.flips
    assert (flip.reference, flip.candidate, flip.verdict) == (("class 2",), ("class 0",), "rounded to a tie")
    assert report.passed
    assert not compare(logits, np.array(logits, dtype=np.float16)).passed


def test_a_limit_of_the_difference_of_its_own():
    assert compare([[10000.0, 1.0]], [[10000.5, 1.0]], allowed=0.5).passed
    assert not compare([[10000.0, 1.0]], [[10000.5, 1.0]], allowed=0.4).passed


def test_indices_against_the_files_own_logits_fail():
    reference, wrong = outputs(BASE), outputs(BASE)
    wrong.topk_indices[0, 2:4] = wrong.topk_indices[0, 3:1:-1].copy()
    parity = Parity("model.onnx", LABELS, TOLERANCE)
    parity.add(["a", "b"], reference, wrong)
    parity.add_batch_size(reference, reference)
    report = parity.report()
    assert report.inconsistent == 1
    assert not report.passed


@given(arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.integers(-2, 2).map(np.float32)))
def test_the_rule_for_ties_is_what_stable_sorting_gives(logits):
    assert follows_logits(outputs(logits)).all()


def test_the_wrong_order_of_a_tie_is_seen():
    logits = np.zeros((1, 3), dtype=np.float32)
    assert not follows_logits(Outputs(logits, logits, np.array([[1, 0, 2]]))).any()


def test_the_report_is_json():
    report = compare(BASE, changed(0, 1, 6.5))
    found = json.loads(json.dumps(to_json(report)))
    assert (found["flips"][0]["id"], found["passed"]) == ("img0", False)
    assert (report.flipped, len(report.different), report.equal_top1 / report.n) == (1, 1, 0.5)

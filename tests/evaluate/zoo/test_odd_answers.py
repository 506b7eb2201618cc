"""ONNX files whose answers depend on the batch or are no logits: evaluations warn of them or refuse them."""

import pytest

from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.measuring.timing_in_turns import Effort

ACROSS = """(float[N, 3, 8, 8] images) => (float[N, 2] scores) {
    pooled = GlobalAveragePool(images)
    flat = Flatten(pooled)
    plain = MatMul(flat, weight)
    mean = ReduceMean <axes = [0], keepdims = 1>(plain)
    scores = Sub(plain, mean)
}"""


FIRST = ACROSS.replace(
    "mean = ReduceMean <axes = [0], keepdims = 1>(plain)",
    """zero = Constant<value_ints = [0]>()
    row = Gather<axis = 0>(plain, zero)
    mean = Sub(plain, row)""",
)


SOFTMAX = ACROSS.replace("scores = Sub(plain, mean)", "scores = Softmax<axis = AXIS>(plain)")


def not_finite_at(size):
    """NaN where the batch has this size."""
    tail = f"""shape = Shape(plain)
    axis = Constant<value_ints = [0]>()
    count = Gather(shape, axis)
    size = Constant<value_ints = [{size}]>()
    this = Equal(count, size)
    zero = Constant<value_float = 0.0>()
    nan = Div(zero, zero)
    scores = Where(this, nan, plain)"""
    return ACROSS.replace("scores = Sub(plain, mean)", tail)


@pytest.fixture
def warnings(onnx_file, recipe_file, image_folder, tmp_path):
    """A function: a graph to the warnings about it on eight images."""

    def run(graph, **options):
        (tmp_path / "labels.txt").write_text("cat\ndog\n")
        found = evaluate_classifiers(
            onnx_file(graph, weight=(3, 2)),
            data=image_folder({"cat": 4, "dog": 4}),
            out=tmp_path / "results",
            preprocessing=recipe_file(channel_order="rgb"),
            labels=str(tmp_path / "labels.txt"),
            **options,
        )
        return "; ".join(map(str, found[0].warnings))

    return run


@pytest.mark.parametrize("graph", [ACROSS, ACROSS.replace("[N", "[2"), FIRST, *map(not_finite_at, (1, 2, 3, 5, 7, 67))])
def test_answers_that_depend_on_the_batch_are_warned_of(warnings, graph):
    assert "depend on what lies beside it" in warnings(graph)


CHANCE = [
    "noise = RandomNormalLike(plain)\n    scores = Add(plain, noise)",
    "noise = RandomUniformLike<low = 0.0, high = 9.0, seed = 1.0>(plain)\n    scores = Mul(plain, noise)",
    """half = Constant<value_float = 0.5>()
    training = Constant<value = bool {1}>()
    scores = Dropout(plain, half, training)""",
]


@pytest.mark.parametrize("tail", CHANCE)
@pytest.mark.parametrize("batch", ["N", "1", "2"])
def test_answers_that_depend_on_chance_are_warned_of_as_such(warnings, tail, batch):
    """Whatever lies beside an input, and whatever the batch is."""
    graph = ACROSS.replace("scores = Sub(plain, mean)", tail).replace("[N", f"[{batch}")
    found = warnings(graph)
    assert "answers the same input differently each time" in found
    assert "depend on what lies beside it" not in found


def test_answers_that_depend_on_the_batch_are_no_matter_of_chance(warnings):
    assert "differently each time" not in warnings(ACROSS)


def test_a_file_of_one_image_a_run_is_not_asked_for_other_batches(warnings, monkeypatch):
    monkeypatch.setattr("headsmith.evaluate.measuring.batch_sizes.batches_of", lambda *_: pytest.fail("ran again"))
    assert "depend on what lies beside it" not in warnings(ACROSS.replace("[N", "[1"))


def test_answers_that_break_at_a_size_that_is_only_timed_are_warned_of(warnings, monkeypatch):
    monkeypatch.setattr("headsmith.evaluate.evaluation.THOROUGH", Effort(0.0, 1, (1, 2, 16)))
    assert "NaN or infinite at a batch size of 16" in warnings(not_finite_at(16), speed=True)


@pytest.mark.parametrize(("size", "speed"), [(1, False), (1, True), (2, False), (7, False), (67, True), (3, False)])
def test_answers_that_break_at_a_size_that_was_run_or_timed_are_warned_of(warnings, monkeypatch, size, speed):
    """Eight images in batches of five: five are run at once, then three."""
    monkeypatch.setattr("headsmith.evaluate.evaluation.THOROUGH", Effort(0.0, 1, (1, 2)))
    assert f"NaN or infinite at a batch size of {size}" in warnings(not_finite_at(size), speed=speed, batch_size=5)


def test_an_answer_that_is_never_finite_is_not_laid_on_the_batch(warnings):
    found = warnings(ACROSS.replace("scores = Sub(plain, mean)", "no = Sub(plain, plain) scores = Div(no, no)"))
    assert "8 inputs have NaN" in found
    assert "at a batch size" not in found


@pytest.mark.parametrize(("axis", "warned"), [(0, True), (1, False)])
def test_a_softmax_over_the_images_is_warned_of(warnings, axis, warned):
    assert ("do not sum to 1" in warnings(SOFTMAX.replace("AXIS", str(axis)))) == warned


@pytest.mark.parametrize(
    ("tail", "warned"),
    [
        ("scores = Softmax<axis = 1>(plain)", False),
        ("scores = Sigmoid(plain)", True),
        ("logarithms = LogSoftmax<axis = 1>(plain)\n    scores = Exp(logarithms)", True),
        ("scores = Neg(plain)", False),
    ],
)
def test_outputs_in_0_to_1_without_a_softmax_are_warned_of(warnings, tail, warned):
    found = warnings(SOFTMAX.replace("scores = Softmax<axis = AXIS>(plain)", tail))
    assert ("outputs lie in 0..1: are they probabilities" in found) == warned


def test_a_softmax_that_is_rounded_to_0_is_no_infinite_logit(warnings):
    tail = """million = Constant<value_float = 1000000.0>()
    large = Mul(plain, million)
    scores = Softmax<axis = 1>(large)"""
    assert "infinite" not in warnings(SOFTMAX.replace("scores = Softmax<axis = AXIS>(plain)", tail))


def test_scores_whose_first_axis_is_no_batch_are_refused(onnx_file, recipe_file, image_folder, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    graph = """(float[N, 3, 8, 8] images) => (float[2, N] scores) {
        pooled = GlobalAveragePool(images)
        flat = Flatten(pooled)
        plain = MatMul(flat, weight)
        scores = Transpose(plain)
    }"""
    with pytest.raises(InputError, match=r"output scores has the shape .*, expected the batch as its first axis"):
        evaluate_classifiers(
            onnx_file(graph, weight=(3, 2)),
            data=image_folder({"cat": 4, "dog": 4}),
            out=tmp_path / "results",
            preprocessing=recipe_file(channel_order="rgb"),
            labels=str(tmp_path / "labels.txt"),
        )

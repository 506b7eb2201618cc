"""ONNX files of unknown origin: what is fed to them, what is taken from them, what is refused."""

import os

import numpy as np
import onnx
import pytest
import torch
from scipy.special import softmax

from headsmith.evaluate.zoo import Failed, open_candidate
from headsmith.models import Normalize, load_backbone

PIXEL = {"resize_size": 1, "crop_size": 1}
SEEN = "(float[N,3,1,1] images) => (float[N,3] scores) { scores = Flatten(images) }"  # its scores are what it is fed


@pytest.fixture
def fed(onnx_file, recipe_file, labels_file, only):
    """A function: one RGB pixel and changes to a Caffe-like recipe, to the numbers that reach a file."""

    def run(pixel, graph=SEEN, **changes):
        found = only(onnx_file(graph), preprocessing=recipe_file(**PIXEL | changes), labels=labels_file(3))
        return open_candidate(found, threads=1).run(np.array(pixel, np.uint8).reshape(1, 1, 1, 3)).logits[0]

    return run


def test_caffes_recipe_on_a_red_pixel(fed):
    np.testing.assert_allclose(fed((255, 0, 0), std=1), [-103.939, -116.779, 131.32], rtol=1e-6)


def test_a_recipe_around_a_half(fed):
    recipe = {"scale": 1 / 255, "mean": 0.5, "std": 0.5, "channel_order": "rgb"}
    np.testing.assert_allclose(fed((128, 128, 128), **recipe), 0.003922, atol=5e-7)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("order", ["rgb", "bgr"])
def test_looking_levels_up_is_normalising(onnx_file, recipe_file, labels_file, only, layout, order):
    shape = "N,3,8,8" if layout == "nchw" else "N,8,8,3"
    path = onnx_file(f"(float[{shape}] images) => (float[N,192] scores) {{ scores = Flatten(images) }}")
    recipe = recipe_file(channel_order=order, scale=1 / 255, mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])
    found = only(path, preprocessing=recipe, labels=labels_file(192))
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    expected = Normalize(found.preprocessing)(torch.from_numpy(pixels).permute(0, 3, 1, 2))
    np.testing.assert_array_equal(open_candidate(found, threads=1).feed(pixels), expected.numpy())


@pytest.mark.parametrize("kind", ["float16", "double", "uint8"])
def test_pixels_come_in_the_dtype_of_the_file(fed, kind):
    graph = f"({kind}[N,3,1,1] images) => (float[N,3] scores) {{ x = Cast<to=1>(images) scores = Flatten(x) }}"
    recipe = {"mean": 0, "std": 1, "channel_order": "rgb"}
    assert fed((255, 0, 7), graph, **recipe).tolist() == [255, 0, 7]


@pytest.mark.parametrize("changes", [{"scale": 1 / 255}, {"mean": [0, 0, 1]}, {"std": 2}])
def test_whole_numbers_take_no_pixels_that_a_recipe_scales(onnx_file, recipe_file, labels_file, only, changes):
    graph = "(uint8[N,3,1,1] images) => (float[N,2] scores) { x = Cast<to=1>(images) f = Flatten(x) "
    path = onnx_file(graph + "scores = MatMul(f, w) }", w=(3, 2))
    recipe = recipe_file(**PIXEL | {"mean": 0, "std": 1, "channel_order": "rgb"} | changes)
    message = r"input images takes uint8 pixels, the recipe has scale .*; expected scale 1, mean 0 and std 1"
    assert_failed(only(path, preprocessing=recipe, labels=labels_file(2)), message)
    with pytest.raises(ValueError, match=message):
        load_backbone(f"onnx:{path}", preprocessing=recipe)


def test_whole_numbers_take_pixels_as_they_are(onnx_file, recipe_file):
    graph = "(uint8[N,3,1,1] images) => (float[N,2] scores) { x = Cast<to=1>(images) f = Flatten(x) "
    path = onnx_file(graph + "scores = MatMul(f, w) }", w=(3, 2))
    recipe = recipe_file(**PIXEL, mean=0, std=1, channel_order="rgb")
    network = load_backbone(f"onnx:{path}", preprocessing=recipe)
    pixels = torch.tensor([[255, 0, 7]], dtype=torch.uint8).reshape(1, 3, 1, 1)
    assert network(pixels).tolist() == [[255, 0, 7]]


def test_nhwc_is_seen_in_the_shape(onnx_file, recipe_file, labels_file, only):
    path = onnx_file("(float[N,8,8,3] images) => (float[N,192] scores) { scores = Flatten(images) }")
    found = only(path, preprocessing=recipe_file(scale=1, mean=0, std=1, channel_order="rgb"), labels=labels_file(192))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    assert found.preprocessing.layout == "nhwc"
    np.testing.assert_array_equal(open_candidate(found, threads=1).run(pixels).logits, pixels.reshape(2, -1))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("1,3,3,3", "could be of either layout; say layout: nchw or layout: nhwc"),
        ("3,8,8", r"shape \[3,8,8\], expected four axes"),
        ("N,3,16,16", r"takes \[N,3,16,16\], the recipe gives \(3, 8, 8\) an image; correct layout or crop_size"),
    ],
)
def test_a_shape_that_does_not_fit(onnx_file, recipe_file, labels_file, only, shape, message):
    path = onnx_file(f"(float[{shape}] images) => (float[N,5] scores) {{ scores = Flatten(images) }}")
    assert_failed(only(path, preprocessing=recipe_file(), labels=labels_file(5)), message)


def assert_failed(found, message):
    assert isinstance(found, Failed)
    with pytest.raises(ValueError, match=message):
        raise ValueError(found.error)


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ("preprocessing", "does not say how images are preprocessed, and that is never guessed"),
        ("labels", "does not say what its outputs are, and that is never guessed"),
    ],
)
def test_nothing_is_guessed(onnx_file, recipe_file, labels_file, only, lacking, message):
    said = {"preprocessing": recipe_file(**PIXEL), "labels": labels_file(3)}
    assert_failed(only(onnx_file(SEEN), **said | {lacking: None}), message)


SCORES = "c = Conv(images, k) p = GlobalAveragePool(c) f = Flatten(p)"


def net(batch="N", outputs="float[N,5] scores", tail="scores = Identity(f)", size="8,8"):
    return f"(float[{batch},3,{size}] images) => ({outputs}) {{ {SCORES} {tail} }}"


@pytest.fixture
def build(onnx_file, recipe_file, labels_file, only):
    """A function: a graph on five scores, and what is said of it, to what is found."""

    def make(graph, classes=5, opset=13, said=None, **weights):
        path = onnx_file(graph, opset=opset, k=(5, 3, 1, 1), **weights)
        return only(path, preprocessing=recipe_file(), labels=labels_file(classes), **said or {})

    return make


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def logits(build, pixels):
    return open_candidate(build(net()), threads=1).run(pixels).logits


def test_a_fixed_batch_is_filled_up_and_the_filling_never_scored(build, pixels, logits):
    found = build(net(batch="2", outputs="float[2,5] scores"))
    outputs = open_candidate(found, threads=1).run(pixels)
    assert found.notes == ("takes batches of 2 only, which are filled up",)
    assert outputs.topk_indices.shape == (5, 5)
    np.testing.assert_allclose(outputs.logits, logits, rtol=1e-5)


def test_an_output_of_fixed_batch(build, pixels, logits):
    """Old exporters freed the input alone."""
    found = build(net(outputs="float[1,5] scores", tail="scores = Reshape(f, shape)"), shape=np.array([1, 5]))
    np.testing.assert_allclose(open_candidate(found, threads=1).run(pixels).logits, logits, rtol=1e-5)


def test_free_height_and_width(build, pixels, logits):
    found = build(net(size="H,W"))
    np.testing.assert_allclose(open_candidate(found, threads=1).run(pixels).logits, logits, rtol=1e-5)


def test_of_a_softmax_the_logarithm_is_taken(build, pixels, logits):
    found = build(net(tail="scores = Softmax(f)"))
    outputs = open_candidate(found, threads=1).run(pixels)
    assert found.setup.probabilities
    np.testing.assert_allclose(softmax(outputs.logits, 1), softmax(logits, 1), atol=1e-6)
    np.testing.assert_allclose(outputs.topk_scores[:, 0], softmax(logits, 1).max(1), rtol=1e-5)


def test_scores_with_axes_of_one(build, pixels, logits):
    found = build(net(outputs="float[N,5,1,1] scores", tail="scores = Unsqueeze(f, axes)"), axes=np.array([2, 3]))
    np.testing.assert_allclose(open_candidate(found, threads=1).run(pixels).logits, logits, rtol=1e-5)


def test_of_two_outputs_the_one_of_fitting_shape(build):
    found = build(net(outputs="float[N,5] scores, float[N,5,8,8] map", tail="scores = Identity(f) map = Identity(c)"))
    assert found.setup.output == "scores"


def test_of_two_fitting_outputs_the_one_called_logits(build):
    two = net(outputs="float[N,5] likely, float[N,5] logits", tail="logits = Identity(f) likely = Softmax(f)")
    assert build(two).setup.output == "logits"
    (warning,) = build(two).warnings
    assert warning.code == "output-by-name"
    assert warning.message.startswith("its scores are taken from logits, by that name; so could they be from likely")
    unnamed = two.replace("logits", "q")
    assert_failed(
        build(unnamed), r"several outputs could be the scores \(likely \[N,5\], q \[N,5\]\); name one with `output`"
    )
    assert build(unnamed, said={"output": "q"}).setup.output == "q"
    assert_failed(build(unnamed, said={"output": "x"}), "`output` x: no such output; expected one of likely")


def test_a_quantised_output(build, pixels, logits):
    steps = {"scale": np.array(0.05, np.float32), "zero": np.array(3, np.int8)}
    found = build(net(outputs="int8[N,5] scores", tail="scores = QuantizeLinear(f, scale, zero)"), **steps)
    outputs = open_candidate(found, threads=1).run(pixels)
    assert found.notes[0].startswith("its scores are quantised in steps of 0.05")
    np.testing.assert_allclose(outputs.logits, np.clip(logits, -131 * 0.05, 124 * 0.05), atol=0.026)


def test_whole_numbers_of_unknown_scale(build, pixels, logits):
    found = build(net(outputs="int32[N,5] scores", tail="scores = Cast<to=6>(f)"))
    outputs = open_candidate(found, threads=1).run(pixels)
    assert [one.code for one in found.warnings] == ["unknown-scale"]
    np.testing.assert_array_equal(outputs.logits, np.trunc(logits))


def test_a_softmax_before_quantisation_is_seen(build):
    steps = {"scale": np.array(1 / 256, np.float32), "zero": np.array(0, np.uint8)}
    tail = "s = Softmax(f) q = QuantizeLinear(s, scale, zero) scores = DequantizeLinear(q, scale, zero)"
    assert build(net(tail=tail), **steps).setup.probabilities


def test_a_background_class(onnx_file, recipe_file, only):
    """1001 outputs are no 1000 classes; with the first one left out five real classes are still named."""
    path = onnx_file(
        "(float[N,3,1,1] images) => (float[N,1001] scores) { f = Flatten(images) scores = MatMul(f, w) }",
        w=np.eye(3, 1001, k=7, dtype=np.float32) + np.eye(3, 1001, dtype=np.float32) * 9,
    )
    said = {"preprocessing": recipe_file(**PIXEL, mean=0, std=1), "labels": "imagenet-1k"}
    assert_failed(
        only(path, **said),
        r"outputs \w+ FLOAT \[.*1001\]; expected 1000 .* 1000 labels of imagenet-1k; is the first one a background",
    )
    assert_failed(only(path, **said, background=1001), r"`background` 1001: expected one of 0..1000")
    found = only(path, **said, background=0)
    outputs = open_candidate(found, threads=1).run(np.full((1, 1, 1, 3), (0, 0, 9), np.uint8))
    assert outputs.logits.shape == (1, 1000)
    assert outputs.topk_indices.tolist() == [[6, 0, 1, 2, 3]]
    assert [column[6] for column in found.names] == ["n01498041", "stingray", "stingray"]


def test_another_number_of_classes(build):
    assert_failed(
        build(net(), classes=7),
        r"outputs \w+ FLOAT \[.*5\]; expected 7 scores an image, one for each of the 7 labels of .*7\.txt$",
    )


@pytest.mark.parametrize(("keep", "shape"), [(0, r"\[N\]"), (1, r"\[N,1\]")])
def test_a_file_that_answers_with_the_number_of_a_class(onnx_file, recipe_file, labels_file, only, keep, shape):
    tail = f"f = Flatten(images) label = ArgMax<axis=1, keepdims={keep}>(f)"
    path = onnx_file(f"(float[N,3,1,1] images) => (int64[N{',1' * keep}] label) {{ {tail} }}")
    found = only(path, preprocessing=recipe_file(**PIXEL), labels=labels_file(3))
    assert_failed(
        found, rf"outputs label INT64 {shape} \(of ArgMax: the number of a class, no scores; .*expected 3 scores"
    )


def test_what_is_no_file_is_named(only, tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    assert_failed(only(tmp_path / "pipe.onnx"), "pipe.onnx: is a named pipe, expected a regular file")


def test_a_file_that_is_too_new(build, tmp_path):
    found = build(net())
    model = onnx.load(found.path)
    model.opset_import[0].version = 99
    onnx.save_model(model, found.path)
    with pytest.raises(ValueError, match=r"opset 99, onnxruntime .* takes up to \d+"):
        open_candidate(found, threads=1)


def test_all_that_can_change_an_answer_is_in_the_fingerprint(onnx_file, recipe_file, labels_file, only, tmp_path):
    path, said = onnx_file(SEEN), {"preprocessing": recipe_file(**PIXEL), "labels": labels_file(3)}
    other_names = tmp_path / "other.txt"
    other_names.write_text("a\nb\nc\n")
    changes = [{"preprocessing": recipe_file(**PIXEL, std=2)}, {"labels": other_names}, {"output": "scores"}]
    found = [only(path, **said | change).fingerprint for change in [{}, *changes]]
    assert len(set(found)) == 3
    assert found[3] == found[0]  # saying what is so changes nothing
    assert only(onnx_file(SEEN.replace("scores", "answers")), **said).fingerprint not in found


def test_what_no_file_is(only, tmp_path):
    assert_failed(only(tmp_path / "no.onnx"), "no.onnx: no such model; expected a bundle, a file, timm:NAME")
    (tmp_path / "odd.txt").write_text("x")
    assert_failed(only(tmp_path / "odd.txt"), "cannot run .txt files")
    (tmp_path / "cut.onnx").write_bytes(b"\x08\x08")
    assert_failed(only(tmp_path / "cut.onnx"), "cut.onnx: (not a valid ONNX file|holds no network)")

"""ONNX files as backbones: what they give."""

import re
import shutil
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx_classifier import BODY, WEIGHTS, classifier, load

from headsmith.core.errors import InputError, ProviderError
from headsmith.models import Linear, Normalize, backbone_classifier, backbone_from_record, load_backbone
from headsmith.models.onnx_backbone import layout_of
from headsmith.models.recipe_file import read_recipe


@pytest.fixture(scope="module")
def zoo(onnx_file):
    return onnx_file(classifier(), **WEIGHTS)


def own_answer(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


def test_features_and_own_classifier_give_the_answer_of_the_file(zoo, recipe_file):
    backbone = load(zoo, recipe_file())
    own, images = backbone_classifier(backbone), torch.randn(2, 3, 8, 8)
    logits = torch.nn.functional.linear(backbone(images), own.weight, own.bias)
    torch.testing.assert_close(logits, own_answer(zoo, images))
    assert (backbone.feature_dim, backbone.tap, backbone.parameter_count) == (4, "input of scores", 4 * 3)
    assert own.names is None


def test_weights_that_are_nodes_of_the_graph_are_counted(zoo, recipe_file, tmp_path):
    model = onnx.load(zoo)
    for weight in list(model.graph.initializer):  # as PaddlePaddle's exporter has them
        model.graph.node.insert(0, onnx.helper.make_node("Constant", [], [weight.name], value=weight))
        model.graph.initializer.remove(weight)
    onnx.save(model, path := tmp_path / "nodes.onnx")
    found, images = load(path, recipe_file()), torch.randn(2, 3, 8, 8)
    assert found.parameter_count == load(zoo, recipe_file()).parameter_count == 4 * 3
    torch.testing.assert_close(found(images), load(zoo, recipe_file())(images))


@pytest.mark.parametrize("inner", ["c", "f", "k"])  # the first value, the last, and a weight
@pytest.mark.parametrize("name", ["images", "features"])
def test_an_inner_value_may_have_the_name_of_the_input_or_the_features(inner, name, zoo, onnx_file, recipe_file):
    text = classifier().replace("images", "pixels")
    text = re.sub(rf"\b{inner}\b", name, text)
    weights = {
        name if key == inner else key: onnx.numpy_helper.to_array(value) for key, value in weights_of(zoo).items()
    }
    backbone, images = load(onnx_file(text, **weights), recipe_file()), torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(backbone(images), load(zoo, recipe_file())(images))


def weights_of(path):
    return {tensor.name: tensor for tensor in onnx.load(path).graph.initializer}


def test_a_record_builds_it_again_wherever_the_file_is(zoo, recipe_file, tmp_path):
    record = load(zoo, recipe_file()).record()
    assert record.spec == "onnx:zoo.onnx"
    moved = replace(record, file=str(shutil.copy(zoo, tmp_path / "moved.onnx")))
    again = backbone_from_record(moved)
    assert again.weights_sha256 == record.weights_sha256
    assert again.preprocessing == record.preprocessing


def test_a_record_refuses_other_weights(zoo, onnx_file, recipe_file):
    other = onnx_file(classifier(), **WEIGHTS | {"k": np.ones((4, 3, 1, 1), np.float32)})
    record = replace(load(zoo, recipe_file()).record(), file=str(other))
    with pytest.raises(InputError, match=r"onnx:zoo.onnx: weights .*, the features were made with"):
        backbone_from_record(record)


def test_the_head_is_no_part_of_the_identity(zoo, onnx_file, recipe_file):
    other = onnx_file(classifier(), **WEIGHTS | {"w": np.ones((5, 4), np.float32)})
    assert load(zoo, recipe_file()).weights_sha256 == load(other, recipe_file()).weights_sha256


def test_external_data(zoo, recipe_file, tmp_path):
    model = onnx.load(zoo)
    onnx.save_model(model, tmp_path / "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
    inside, beside = load(zoo, recipe_file()), load(tmp_path / "big.onnx", recipe_file())
    assert inside.weights_sha256 == beside.weights_sha256
    torch.testing.assert_close(inside.probe, beside.probe)
    assert torch.equal(backbone_classifier(inside).weight, backbone_classifier(beside).weight)

    (tmp_path / "big.data").rename(tmp_path / "gone.data")
    with pytest.raises(InputError, match=r"big\.data: missing, but .*\.onnx has weights in it"):
        load(tmp_path / "big.onnx", recipe_file())
    (tmp_path / "inner").mkdir()
    outside = onnx.load(tmp_path / "big.onnx", load_external_data=False)
    for tensor in outside.graph.initializer:
        tensor.external_data[0].value = "../gone.data"
    onnx.save_model(outside, tmp_path / "inner" / "big.onnx")
    with pytest.raises(InputError, match="outside of the file's folder"):
        load(tmp_path / "inner" / "big.onnx", recipe_file())


def test_half_precision(onnx_file, recipe_file):
    half = {name: np.ones(shape, np.float16) / 8 for name, shape in WEIGHTS.items()}
    path = onnx_file(classifier(kind="float16"), **half)
    backbone = load(path, recipe_file())
    expected = torch.relu(Normalize(backbone.preprocessing)(torch.full((1, 3, 8, 8), 200.0)).sum(1) / 8).mean()
    features = backbone(Normalize(backbone.preprocessing)(torch.full((2, 3, 8, 8), 200.0)))
    assert features.dtype == torch.float32
    torch.testing.assert_close(features, expected.expand(2, 4), rtol=1e-3, atol=0)


def test_a_fixed_batch_is_freed(onnx_file, recipe_file):
    """Reshapes that repeat the batch follow it."""
    flat = BODY.replace("Flatten(p)", "Reshape(p, s)")
    path = onnx_file(classifier("1,3,8,8", flat), **WEIGHTS, s=np.array([1, 4], np.int64))
    backbone, images = load(path, recipe_file()), torch.randn(7, 3, 8, 8)
    own = backbone_classifier(backbone)
    expected = torch.cat([own_answer(path, image[None]) for image in images])
    torch.testing.assert_close(torch.nn.functional.linear(backbone(images), own.weight, own.bias), expected)


def test_a_batch_that_cannot_be_freed(onnx_file, recipe_file):
    """A token for one image."""
    body = "q = Concat<axis=2>(images, token) " + BODY.replace("Conv(images", "Conv(q")
    path = onnx_file(classifier("1,3,8,8", body), **WEIGHTS, token=(1, 3, 1, 8))
    with pytest.raises(InputError, match="its batch is fixed and cannot be freed; .*cannot run images"):
        load(path, recipe_file())


@pytest.mark.parametrize("batch", ["1", "N"])
@pytest.mark.parametrize("mixing", ["m = ReduceMean<axes=[0]>(p)", "m = ReduceMax<axes=[0]>(p)"])
def test_images_that_depend_on_those_beside_them(onnx_file, recipe_file, batch, mixing):
    body = BODY.replace("f = Flatten(p)", f"{mixing} d = Sub(p, m) f = Flatten(d)")
    path = onnx_file(classifier(f"{batch},3,8,8", body), **WEIGHTS)
    with pytest.raises(InputError, match="the features of an image depend on those beside it in a batch") as found:
        load(path, recipe_file())
    assert "fixed" not in str(found.value)


@pytest.mark.parametrize("drawn", ["RandomNormalLike", "RandomNormalLike<seed=1.0>", "RandomUniformLike"])
def test_features_that_are_drawn(onnx_file, recipe_file, drawn):
    body = BODY.replace("f = Flatten(p)", f"m = {drawn}(p) d = Add(p, m) f = Flatten(d)")
    path = onnx_file(classifier(body=body), **WEIGHTS)
    with pytest.raises(InputError, match="gives other features at every run for the same images"):
        load(path, recipe_file())


def test_channels_last_is_seen_in_the_shape(onnx_file, recipe_file):
    path = onnx_file(
        classifier("N,8,8,3", "t = Transpose<perm=[0,3,1,2]>(images) " + BODY.replace("Conv(images", "Conv(t")),
        **WEIGHTS,
    )
    backbone = load(path, recipe_file())
    assert backbone.preprocessing.layout == "nhwc"
    fed = Normalize(backbone.preprocessing)(torch.zeros(2, 3, 8, 8))
    assert fed.shape == (2, 8, 8, 3)
    assert backbone(fed).shape == (2, 4)
    with pytest.raises(InputError, match="is nhwc, the recipe says nchw"):
        load(path, recipe_file(layout="nchw"))


def test_layouts():
    assert [layout_of(shape) for shape in ([None, 3, 8, 8], [None, 8, 8, 3], [1, 3, 3, 3], [None] * 4)] == [
        "nchw",
        "nhwc",
        None,
        None,
    ]


def test_an_ambiguous_layout_must_be_said(onnx_file, recipe_file):
    path = onnx_file(classifier("1,3,3,3"), **WEIGHTS)
    with pytest.raises(InputError, match="either layout; say layout: nchw or layout: nhwc"):
        load(path, recipe_file(crop_size=3))
    assert load(path, recipe_file(crop_size=3, layout="nchw")).feature_dim == 4


def test_a_red_pixel_of_a_caffe_network(recipe_file):
    recipe = read_recipe(recipe_file(std=1), "nchw")
    red = torch.tensor([255.0, 0.0, 0.0]).view(1, 3, 1, 1)
    torch.testing.assert_close(Normalize(recipe)(red).flatten(), torch.tensor([-103.939, -116.779, 131.320]))


def test_a_background_class_is_dropped(onnx_file, recipe_file):
    """1001 outputs, the first of which is no class: without the option both numbers are told apart at the start."""
    path = onnx_file(classifier().replace("N,5", "N,1001"), **WEIGHTS | {"w": (1001, 4), "b": (1001,)})
    whole = backbone_classifier(load(path, recipe_file()))
    backbone = load(path, recipe_file(), drop_background=True)
    own, images = backbone_classifier(backbone), torch.randn(2, 3, 8, 8)
    assert (len(whole.bias), len(own.bias)) == (1001, 1000)
    logits = torch.nn.functional.linear(backbone(images), own.weight, own.bias)
    torch.testing.assert_close(logits, own_answer(path, images)[:, 1:])
    assert backbone_from_record(backbone.record()).source.classifier.out_features == 1000


def test_an_exported_file_is_a_backbone_without_a_recipe(tiny_bundle, tiny_run):
    """Normalisation is inside; what is left is the head that was trained, with its labels."""
    backbone = load_backbone(f"onnx:{tiny_bundle.path / 'model.onnx'}")
    original = backbone_from_record(tiny_run.record.backbone)
    pixels = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.inference_mode():
        expected = original(Normalize(original.preprocessing)(pixels))
    torch.testing.assert_close(backbone(Normalize(backbone.preprocessing)(pixels)), expected, atol=1e-5, rtol=1e-4)
    assert backbone.preprocessing.crop_size == original.preprocessing.crop_size
    own, head = backbone_classifier(backbone), tiny_run.head.folded()
    assert isinstance(head, Linear)
    torch.testing.assert_close(own.weight, head.weight.detach())
    assert own.names == (tuple(tiny_run.class_names),)


def test_a_card_that_onnxruntime_cannot_use_is_told_by_the_option_that_extract_has(zoo, recipe_file, monkeypatch):
    network = load(zoo, recipe_file()).network
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ProviderError, match=r"^device cuda: this onnxruntime.* has cpu; pip install .* or use cpu$"):
        network._session("cuda")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_of_nan_are_told_as_such(value, zoo, onnx_file, recipe_file):
    """No row of NaN is equal to itself, beside another one or not."""
    weights = {name: onnx.numpy_helper.to_array(one).copy() for name, one in weights_of(zoo).items()}
    weights["k"][:] = value
    with pytest.raises(InputError, match=r"zoo\.onnx: the backbone gives NaN or infinite features for images of noise"):
        load(onnx_file(classifier(), **weights), recipe_file())


def test_a_network_that_takes_no_negative_values_is_run_on_pixels(onnx_file, recipe_file):
    graph = "(float[N,3,8,8] images) => (float[N,5] scores) { r = Sqrt(images) p = GlobalAveragePool(r) "
    path = onnx_file(graph + "f = Flatten(p) scores = Gemm<transB=1>(f, w, b) }", w=(5, 3), b=(5,))
    assert load(path, recipe_file(mean=[0, 0, 0], std=1)).feature_dim == 3

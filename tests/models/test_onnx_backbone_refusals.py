"""ONNX files and options that are refused as a backbone, in one line."""

import numpy as np
import onnx
import pytest
from onnx_classifier import BODY, WEIGHTS, classifier, load

from headsmith.core.errors import InputError
from headsmith.models import load_backbone


@pytest.fixture(scope="module")
def zoo(onnx_file):
    return onnx_file(classifier(), **WEIGHTS)


def damaged(zoo, keep):
    path = zoo.with_name("damaged.onnx")
    path.write_bytes(zoo.read_bytes()[:keep])
    return path


@pytest.mark.parametrize("keep", [0, 40, -20])
def test_a_damaged_file(zoo, recipe_file, keep):
    with pytest.raises(InputError, match=r"damaged.onnx: not a valid ONNX file"):
        load(damaged(zoo, keep), recipe_file())


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"opset": 99}, "opset 99, onnxruntime .* takes up to [0-9]+"),
        ({"ir": 99}, "ir_version 99 .* checker's .[0-9]+"),
    ],
)
def test_a_file_that_is_too_new(onnx_file, recipe_file, versions, message):
    path = onnx_file("(float[N,3,8,8] images) => (float[N,5] scores) { " + BODY + " }", **WEIGHTS)
    model = onnx.load(path)
    model.opset_import[0].version = versions.get("opset", 13)
    model.ir_version = versions.get("ir", 8)
    onnx.save_model(model, path)
    with pytest.raises(InputError, match=message):
        load(path, recipe_file())


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            classifier()
            .replace("images)", "images, float[N,4] other)")
            .replace("Gemm<transB=1>(f", "Gemm<transB=1>(q")
            .replace(" scores =", " q = Add(f, other) scores ="),
            "inputs images, other; expected one, the images",
        ),
        (
            classifier("N,8,8", "e = Unsqueeze(images, one) " + BODY.replace("images", "e")),
            r"shape \[N,8,8\], expected",
        ),
        (classifier("N,3,16,16"), "takes images of 16 x 16 pixels, the recipe crops 8 x 8; set crop_size"),
        (
            classifier()
            .replace("float[N,3", "int64[N,3")
            .replace("c = Conv(images", "x = Cast<to=1>(images) c = Conv(x"),
            "takes INT64",
        ),
    ],
    ids=["several inputs", "three axes", "another size", "whole numbers"],
)
def test_a_file_that_is_no_image_classifier(onnx_file, recipe_file, graph, message):
    path = onnx_file(graph, **WEIGHTS, one=np.array([1], np.int64))
    with pytest.raises(InputError, match=message):
        load(path, recipe_file())


def test_features_of_another_width_than_the_layer_takes(onnx_file, recipe_file):
    """Without its pooling a convolution's input is no feature vector."""
    path = onnx_file(classifier(body="c = Conv(images, w, b) scores = Flatten(c)"), w=(5, 3, 1, 1), b=(5,))
    with pytest.raises(InputError, match=r"features of shape \(2, 192\) before a layer that takes 3"):
        load(path, recipe_file())


def test_a_recipe_is_never_guessed(zoo):
    with pytest.raises(InputError, match="does not say how images are preprocessed, and that is never guessed"):
        load_backbone(f"onnx:{zoo}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": "w.pth"}, "^checkpoint: w.pth found; an ONNX file has its own weights"),
        ({"image_size": 64}, "^image_size: 64 found"),
    ],
)
def test_options_of_other_backbones(zoo, options, message):
    with pytest.raises(InputError, match=message):
        load_backbone(f"onnx:{zoo}", **options)


@pytest.mark.parametrize(("name", "value"), [("layer", "fc"), ("drop_background", True), ("preprocessing", "x.yaml")])
def test_options_of_onnx_files_only(name, value):
    with pytest.raises(InputError, match=f"{name}: only for `backbone` onnx:FILE"):
        load_backbone("timm:test_resnet", **{name: value})

"""Any ONNX classifier with another head, against its own parts under onnxruntime."""

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_file
from headsmith.core.records import to_json
from headsmith.evaluate import evaluate_classifiers, predict
from headsmith.export import Classifier, export_classifier, file_info, graft, open_model
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.metadata import Metadata, identity
from headsmith.export.parity.proof_at_export import python_outputs
from headsmith.models import Linear, Preprocessing, backbone_classifier, load_backbone
from headsmith.trainer import FeatureSet, extract, train

CLASSES = ("cat", "dog", "emu", "fox", "gnu", "hen")
GRAPH = """(float[1,3,8,8] images) => (float[1,1001] scores) {
    c = Conv<strides=[2,2]>(images, k) r = Relu(c) p = GlobalAveragePool(r) f = Reshape(p, s)
    g = Gemm<transB=1>(f, w, b) scores = Softmax<axis=1>(g)
}"""


@pytest.fixture(scope="module")
def zoo(onnx_file):
    """A classifier as zoos have them: batch 1, a softmax, a background class, an old operator set."""
    sizes = np.array([1, 16], np.int64)
    return onnx_file(GRAPH, opset=9, ir=4, k=(16, 3, 2, 2), w=(1001, 16), b=(1001,), s=sizes)


@pytest.fixture(scope="module")
def features(zoo, image_folder, recipe_file, tmp_path_factory):
    images, out = image_folder(dict.fromkeys(CLASSES, 20)), tmp_path_factory.mktemp("features") / "zoo"
    return extract(images, out=out, backbone=f"onnx:{zoo}", preprocessing=recipe_file(), dtype="float32")


@pytest.fixture(scope="module")
def run(features, tmp_path_factory):
    return train(features, out=tmp_path_factory.mktemp("run") / "zoo", epochs=40, learning_rate=0.05, device="cpu")


@pytest.fixture(scope="module")
def bundle(zoo, run, tmp_path_factory):
    return graft(zoo, head=run, out=tmp_path_factory.mktemp("graft") / "zoo", input_format="uint8-nhwc")


def test_the_new_file_is_the_old_one_up_to_its_last_layer_and_then_the_head(zoo, run, bundle):
    """The reference: the old file cut by onnx's own extractor, the recipe and the product written out in numpy."""
    old = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(onnx.load(zoo))).extract_model(["images"], ["f"])
    session = onnxruntime.InferenceSession(old.SerializeToString(), providers=["CPUExecutionProvider"])
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    fed = (pixels[..., ::-1] - np.array([103.939, 116.779, 123.68])) / 58
    rows = [session.run(None, {"images": row[None].astype(np.float32)})[0] for row in fed.transpose(0, 3, 1, 2)]
    head = run.head.folded()
    expected = np.concatenate(rows) @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    outputs = bundle.open().run(pixels)
    np.testing.assert_allclose(outputs.logits, expected, atol=1e-4)
    assert outputs.topk_indices[:, 0].tolist() == expected.argmax(1).tolist()


def test_it_is_an_ordinary_bundle(run, bundle, tmp_path):
    (result,) = evaluate_classifiers(bundle, data=run.record.features.source.source, out=tmp_path / "results")
    assert result.top1.value == run.record.results.test.top1 > 0.5
    image = next(Path(run.record.features.source.source).rglob("*.png"))
    assert set(predict(bundle, [image])[0].labels) < set(CLASSES)
    parity = bundle.manifest.parity["model.onnx"]
    assert (parity.flips, parity.n) == (0, 12)
    assert parity.max_abs_difference < 1e-4
    assert bundle.manifest.parameters == 16 * 3 * 2 * 2 + 16 * 6 + 6


def test_the_file_is_valid_and_current(bundle):
    model = onnx.load(bundle.path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert ({entry.domain: entry.version for entry in model.opset_import}, model.ir_version <= 10) == ({"": 18}, True)
    assert [value.name for value in model.graph.output] == ["logits", "topk_scores", "topk_indices"]
    assert [list(node.input) for node in model.graph.node if node.op_type == "Softmax"] == [["logits"]]


def test_export_of_the_run_gives_the_same_file(run, bundle, tmp_path):
    exported = export_classifier(run, out=tmp_path / "zoo", input_format="uint8-nhwc")
    assert sha256_file(exported.path / "model.onnx") == sha256_file(bundle.path / "model.onnx")


def test_weights_beside_the_file_come_along(zoo, run, bundle, tmp_path):
    onnx.save_model(onnx.load(zoo), tmp_path / "zoo.onnx", save_as_external_data=True, location="w", size_threshold=0)
    grafted = graft(tmp_path / "zoo.onnx", head=run, out=tmp_path / "out", input_format="uint8-nhwc")
    assert sha256_file(grafted.path / "model.onnx") == sha256_file(bundle.path / "model.onnx")


def test_other_formats_cannot_hold_an_onnx_file(run, tmp_path):
    with pytest.raises(InputError, match="is an ONNX file, which only onnx and triton can hold"):
        export_classifier(run, out=tmp_path / "zoo", formats=("torchscript",))
    assert not (tmp_path / "zoo").exists()


def test_another_file_is_refused(onnx_file, run, tmp_path):
    sizes = np.array([1, 16], np.int64)
    other = onnx_file(GRAPH, opset=9, ir=4, k=np.ones((16, 3, 2, 2), np.float32), w=(1001, 16), b=(1001,), s=sizes)
    with pytest.raises(InputError, match="the features were made with"):
        graft(other, head=run, out=tmp_path / "out")


def test_what_the_run_says_is_not_said_again(zoo, run, recipe_file, tmp_path):
    for option in ({"layer": "g"}, {"preprocessing": recipe_file()}):
        with pytest.raises(InputError, match=f"{next(iter(option))}: .* already sets it; leave it out"):
            graft(zoo, head=run, out=tmp_path / "out", **option)


def test_a_head_of_another_backbone_is_refused(zoo, tiny_run, tmp_path):
    with pytest.raises(InputError, match=r"features of timm:test_resnet, not of an ONNX file; extract with `backbone`"):
        graft(zoo, head=tiny_run, out=tmp_path / "out")


def imported(rows, labels, out):
    features = FeatureSet.from_arrays(rows, [CLASSES[label] for label in labels])
    return train(features, out=out, epochs=5, device="cpu")


def test_a_head_on_features_of_nobody_knows_what(zoo, run, features, recipe_file, tmp_path):
    rows, labels = (tensor.numpy() for tensor in features.arrays("train"))
    options = {"preprocessing": recipe_file(), "data": run.record.features.source.source}
    grafted = graft(zoo, head=imported(rows, labels, tmp_path / "run"), out=tmp_path / "out", **options)
    assert grafted.manifest.backbone.spec == "onnx:zoo.onnx"
    narrow = imported(rows[:, :7], labels, tmp_path / "narrow")
    with pytest.raises(InputError, match="head takes 7 features, the backbone gives 16"):
        graft(zoo, head=narrow, out=tmp_path / "no", **options)


def test_a_background_class_is_left_out_of_a_start(zoo, features, image_folder, recipe_file, tmp_path):
    """1001 outputs for six classes: the numbers are told; without the first output they are 1000."""
    with pytest.raises(InputError, match="has 1001 outputs, the feature set 6 classes"):
        train(features, out=tmp_path / "run", start="backbone-in-order", epochs=1, device="cpu")
    images = image_folder(dict.fromkeys(CLASSES, 4))
    options = {"preprocessing": recipe_file(), "drop_background": True}
    dropped = extract(images, out=tmp_path / "features", backbone=f"onnx:{zoo}", **options)
    with pytest.raises(InputError, match="has 1000 outputs, the feature set 6 classes"):
        train(dropped, out=tmp_path / "run", start="backbone-in-order", epochs=1, device="cpu")


LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
RECIPE = Preprocessing("shortest", (224, 224), (224, 224), "bilinear", (0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize("path", LIGHT, ids=[path.stem for path in LIGHT])
def test_the_classic_zoo_gets_a_head_of_ten_classes(path, tmp_path):
    torch.manual_seed(0)
    backbone = load_backbone(f"onnx:{path}", preprocessing=RECIPE)
    _check_own_classifier(path, backbone)
    head = Linear(backbone.feature_dim, 10)
    head.start_from(torch.rand(10, backbone.feature_dim) / backbone.feature_dim, torch.rand(10))
    labels = tuple(f"class {index}" for index in range(10))
    record = identity(backbone.record(), backbone.feature_dim)
    metadata = Metadata(labels, "float-nchw", RECIPE, record, feature_set="none")
    classifier = Classifier(head, backbone)
    write_onnx(classifier, metadata, tmp_path / "model.onnx")  # checks it, with full shape inference
    pixels = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    expected, found = python_outputs(classifier, metadata, pixels), open_model(tmp_path / "model.onnx").run(pixels)
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-4)


def _check_own_classifier(path, backbone):
    """Where it is affine it gives the output that the onnx package ships with the file, whatever the image."""
    shipped = onnx.load_tensor(str(path).replace(".onnx", "_output_0.pb"))
    if path.stem == "light_squeezenet":
        with pytest.raises(InputError, match="its own classifier is a Sequential, expected one Linear"):
            backbone_classifier(backbone)
        return
    own = backbone_classifier(backbone)
    logits = torch.nn.functional.linear(backbone.probe, own.weight, own.bias)
    scores = logits if path.stem == "light_densenet121" else torch.softmax(logits, -1)
    np.testing.assert_allclose(scores.numpy(), onnx.numpy_helper.to_array(shipped).flatten(), rtol=1e-5)


def test_there_are_nine_of_them():
    assert len(LIGHT) == 9


def test_info_of_a_foreign_file(zoo):
    info = file_info(zoo)
    assert (info.sha256, info.bytes, info.metadata) == (sha256_file(zoo), zoo.stat().st_size, {})
    assert to_json(info.graph) == {
        "inputs": [{"name": "images", "dtype": "float", "shape": [1, 3, 8, 8]}],
        "outputs": [{"name": "scores", "dtype": "float", "shape": [1, 1001]}],
        "opsets": {"ai.onnx": 9},
        "ir_version": 4,
        "producer": None,
        "parameters": 16 * 3 * 2 * 2 + 1001 * 17,
        "last_layer": {"name": "g", "operator": "Gemm", "features": 16, "outputs": 1001, "softmaxes": 1},
    }


def test_info_of_a_bundle_has_names_in_order_and_their_hash(bundle):
    info = file_info(bundle.path)
    assert info.path == str(bundle.path / "model.onnx")
    assert info.metadata["labels"] == list(CLASSES)
    assert info.metadata["labels_sha256"] == bundle.manifest.labels_sha256
    permuted = dataclasses.replace(bundle.open().metadata, labels=CLASSES[::-1])
    assert permuted.labels_sha256 != info.metadata["labels_sha256"]


def test_info_of_other_formats(tiny_bundle):
    info = file_info(tiny_bundle.path / "model.ts")
    assert (info.graph, info.metadata["labels"]) == (None, list(CLASSES))


def test_info_says_why_no_last_layer_is_found(onnx_file):
    path = onnx_file("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }")
    assert "has no Gemm, MatMul or 1x1 Conv with constant weights" in file_info(path).graph.last_layer.not_found

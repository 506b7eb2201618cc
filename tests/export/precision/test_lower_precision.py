"""float16 and int8 ONNX files: what they compute, what stays float32, and when they are refused."""

import dataclasses

import numpy as np
import onnx
import pytest
import timm
import torch
from onnx import TensorProto, numpy_helper
from torch import nn

from headsmith.core.errors import InputError
from headsmith.export import Classifier, ExportError, GateError, open_model
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.held_out import Batch
from headsmith.export.metadata import Metadata, identity
from headsmith.export.options import ExportOptions
from headsmith.export.precision.gates import measure_gate, unseen_drop
from headsmith.export.precision.lower_writer import write_lower
from headsmith.models import Linear, build_head, load_backbone

LABELS = tuple("abcdef")


def chosen(precision, **options):
    return ExportOptions(precision=precision, **options)


@pytest.fixture(scope="module")
def backbone(tiny_backbone):
    arguments = tiny_backbone._asdict()
    return load_backbone(arguments.pop("backbone"), **arguments)


def written(folder, head, backbone=None, input_format="float-nchw"):
    """The float32 file, and inputs for it."""
    about = Metadata(
        tuple(f"class {index}" for index in range(head.num_classes)),
        input_format if backbone else "features",
        backbone and backbone.preprocessing,
        identity(backbone and backbone.record(), head.in_features),
        "feature set",
    )
    write_onnx(Classifier(head, backbone, input_format).folded(), about, folder / "full.onnx")
    generator = np.random.default_rng(0)
    if backbone is None:
        return generator.normal(size=(256, head.in_features)).astype(np.float32)
    return generator.integers(0, 256, (64, *backbone.preprocessing.crop_size, 3), dtype=np.uint8)


def lowered(folder, options, inputs, out=None):
    full, path = open_model(folder / "full.onnx"), (out or folder) / "model.onnx"
    write_lower(full, path, [full.feed(inputs)], options)
    return full, open_model(path)


@pytest.fixture(scope="module", params=["float-nchw", "uint8-nhwc"])
def convolutional(request, backbone, tmp_path_factory):
    """(folder, inputs) of a small network's float32 file."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, written(folder, random_head(), backbone, request.param)


def random_head(kind="linear", in_features=96, scale=1.0, **options):
    head = build_head(kind, in_features, len(LABELS), **options)
    nn.init.normal_(head.weight, std=scale, generator=torch.Generator().manual_seed(0))
    return head


class Inputs:
    """Labelled inputs as `measure_gate` takes them."""

    name = "here"

    def __init__(self, inputs, labels):
        self.inputs, self.labels = inputs, labels

    def __len__(self):
        return len(self.inputs)

    def batches(self, size):
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield Batch(self.inputs[part], self.labels[part], [f"{row}" for row in range(len(self))[part]])


def measured(full, lower, inputs, max_drop=2.0):
    labels = full.run(inputs).logits.argmax(1)
    return measure_gate(full, lower, Inputs(inputs, labels), ExportOptions(max_drop=max_drop))


def elements(model):
    """The element types of its inputs and outputs, and of its large weights."""
    graph = model.graph
    interface = [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
    return interface, {tensor.data_type for tensor in graph.initializer if np.prod(tensor.dims) > 10}


def test_float16_network_between_float32_ends(convolutional, tmp_path):
    folder, inputs = convolutional
    full, half = lowered(folder, chosen("fp16"), inputs, tmp_path)
    given = {"float-nchw": TensorProto.FLOAT, "uint8-nhwc": TensorProto.UINT8}
    interface, weights = elements(onnx.load(half.path))
    assert interface == [given[full.metadata.input_format], TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64]
    assert weights == {TensorProto.FLOAT16}
    assert half.metadata == dataclasses.replace(full.metadata, precision="fp16")
    assert half.path.stat().st_size < 0.6 * full.path.stat().st_size
    for batch in (1, 2, 7):  # from one uint8 data set, whatever the file takes
        np.testing.assert_allclose(half.run(inputs[:batch]).logits, full.run(inputs[:batch]).logits, atol=0.01)
    report = measured(full, half, inputs)
    assert report.passed
    assert report.agreement.equal_top1 >= 0.99 * len(inputs)


def test_logits_beyond_float16(backbone, tmp_path):
    """A logit of 70,000 is infinite in float16; with the head in float32 it is not."""
    inputs = np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)
    logits = Classifier(random_head(), backbone, "uint8-nhwc")(torch.from_numpy(inputs)).logits
    assert (written(tmp_path, random_head(scale=70000 / float(logits.abs().max())), backbone) == inputs).all()
    with pytest.raises(GateError, match=r"1 tensors would not be finite .* largest logits with 70000 .*`fp32_head`"):
        lowered(tmp_path, chosen("fp16"), inputs)
    full, half = lowered(tmp_path, chosen("fp16", fp32_head=True), inputs)
    assert np.isfinite(half.run(inputs).logits).all()
    assert measured(full, half, inputs).agreement.equal_top1 >= 0.99 * len(inputs)


def test_logits_that_become_equal(tmp_path):
    """20.001, 20.002 and 20.003 are all 20.0 in float16: the lower index stands first, and the report says it."""
    head = Linear(4, 3)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[20.001], [20.002], [20.003]]) * torch.tensor([1.0, 0, 0, 0]))
    written(tmp_path, head)
    inputs = np.array([[1.0, 0, 0, 0]], dtype=np.float32)
    full, half = lowered(tmp_path, chosen("fp16"), inputs)
    assert full.run(inputs).topk_indices.tolist() == [[2, 1, 0]]
    assert half.run(inputs).logits.tolist() == [[20.0, 20.0, 20.0]]
    assert half.run(inputs).topk_indices.tolist() == [[0, 1, 2]]
    (flip,) = measured(full, half, inputs).agreement.flips
    assert (flip.reference, flip.candidate, flip.verdict) == (("class 2",), ("class 0",), "rounded to a tie")


@pytest.fixture(scope="module", params=["linear", "mlp", "cosine"])
def head_alone(request, tmp_path_factory):
    """(folder, inputs) of a head's float32 file."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, written(folder, random_head(request.param, **({"hidden": 64} if request.param == "mlp" else {})))


@pytest.mark.parametrize("kind", ["fp16", "int8", "int8-dynamic"])
def test_heads_alone(head_alone, tmp_path, kind):
    folder, inputs = head_alone
    full, lower = lowered(folder, chosen(kind), inputs, tmp_path)
    expected, found = full.run(inputs).logits, lower.run(inputs).logits
    assert np.abs(found - expected).max() < (0.002 if kind == "fp16" else 0.05) * np.abs(expected).max()
    assert len(np.unique(found)) > 256  # logits themselves are not quantised, else they would tie


def test_int8_keeps_preprocessing_and_the_first_convolution(convolutional, tmp_path):
    folder, inputs = convolutional
    full, lower = lowered(folder, chosen("int8"), inputs, tmp_path)
    graph = onnx.load(lower.path).graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    made_by = {output: node for node in graph.node for output in node.output}
    assert weights[convolutions[0].input[1]].dtype == np.float32
    for node in convolutions[1:]:
        dequantize = made_by[node.input[1]]
        assert weights[dequantize.input[0]].dtype == np.int8
        assert weights[dequantize.input[1]].shape == weights[dequantize.input[0]].shape[:1]  # a scale a channel
    assert measured(full, lower, inputs).agreement.equal_top1 >= 0.9 * len(inputs)
    assert lower.path.stat().st_size < 0.5 * full.path.stat().st_size


def test_a_collapse_is_seen(tmp_path):
    """Channels 1000 times as large as others: what decides is lost in a tensor's one scale (onnxruntime#11286)."""
    head = Linear(4, 6)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]] + 3 * [[-1.0, -1, -1, 0]]))
    written(tmp_path, head)
    inputs = np.random.default_rng(0).uniform(0, 1, (300, 4)).astype(np.float32)
    inputs[:, 3] = 1000
    full, lower = lowered(tmp_path, chosen("int8"), inputs)
    report = measured(full, lower, inputs)
    assert not report.passed
    assert report.top1_drop > 50
    assert report.most_predicted_share == 1.0
    assert "class 'class 0' takes 100% of the predictions" in report.failure()
    assert report.tests["top1"].p < 1e-9


def test_limits(tmp_path):
    inputs = written(tmp_path, random_head())
    full, lower = lowered(tmp_path, chosen("int8"), inputs)
    report = measured(full, lower, inputs, max_drop=100.0)
    assert report.passed
    assert 0 < report.flips == round(report.top1_drop * 256 / 100)  # labels are the float32 file's answers
    exceeded = dataclasses.replace(report, max_drop=0.4)
    assert not exceeded.passed
    assert "top-1 drops by" in exceeded.failure()
    assert dataclasses.replace(report, max_drop=report.top1_drop).passed


@pytest.mark.parametrize(
    ("n", "max_drop", "seen"),
    [
        (8, 1.0, False),
        (8, 12.5, True),
        (8, 12.4, False),
        (99, 1.0, False),
        (100, 1.0, True),
        (1000, 0.1, True),
        (50_000, 0.0, False),
    ],
)
def test_one_input_is_more_than_may_be_lost(n, max_drop, seen):
    assert (unseen_drop(n, max_drop) is None) == seen


def test_what_is_expected_of_few_inputs_is_enough():
    said = unseen_drop(8, 0.3)
    assert said.startswith("--max-drop: 0.3 points on 8 validation inputs found, where one input is 12.5 points")
    assert said.endswith("expected at least 334 of them, or --max-drop 12.5")
    assert unseen_drop(334, 0.3) is None
    assert unseen_drop(333, 0.3)
    assert unseen_drop(8, 12.5) is None


def test_inputs_that_could_not_be_read_do_not_count(tmp_path):
    """Of 100 inputs, as many as the gate asks for, 99 were read."""
    inputs = written(tmp_path, random_head())
    full, lower = lowered(tmp_path, chosen("fp16"), inputs)
    report = measured(full, lower, inputs[:99], max_drop=1.0)
    assert not report.passed
    assert "1 points on 99 validation inputs" in report.failure()
    assert measured(full, lower, inputs[:100], max_drop=1.0).passed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_drop": -1.0}, "^max_drop: -1.0 found, expected 0 to 100 points"),
        ({"max_drop": float("nan")}, "^max_drop: nan found, expected 0 to 100 points"),
        ({"precision": "fp8"}, "^precision: 'fp8' found, expected one of fp32, fp16, int8, int8-dynamic"),
        ({"precision": "int8_dynamic"}, "did you mean int8-dynamic"),
        ({"fp32_head": True}, "^fp32_head: says how to convert; add `precision` fp16"),
        ({"fp32_head": True, "precision": "int8"}, "^fp32_head: says how to convert"),
    ],
)
def test_options_that_mean_nothing(options, message):
    with pytest.raises(InputError, match=message):
        ExportOptions(**options)


def test_nothing_to_convert(tmp_path):
    inputs = written(tmp_path, random_head())
    with pytest.raises(ExportError, match="no convolution or matrix product is left"):
        lowered(tmp_path, chosen("fp16", fp32_head=True), inputs)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    """(folder, inputs) of a small vision transformer's float32 file, whose reshapes read the size of the batch."""
    folder = tmp_path_factory.mktemp("transformer")
    torch.manual_seed(0)
    torch.save(timm.create_model("test_vit").state_dict(), folder / "vit.pth")
    backbone = load_backbone("timm:test_vit", checkpoint=folder / "vit.pth")
    return folder, written(folder, random_head(in_features=backbone.feature_dim), backbone)


@pytest.mark.parametrize("kind", ["fp16", "int8", "int8-dynamic"])
def test_a_transformer(transformer, tmp_path, kind):
    folder, inputs = transformer
    full, lower = lowered(folder, chosen(kind), inputs, tmp_path)
    expected = full.run(inputs).logits
    for batch in (1, 2, 7):
        found = lower.run(inputs[:batch]).logits
        assert (found.argmax(1) == expected[:batch].argmax(1)).all()
        if kind == "fp16":
            assert np.abs(found - expected[:batch]).max() < 0.01 * np.abs(expected).max()

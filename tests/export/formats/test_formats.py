"""What is written: free batch axis, opset, IR, metadata, ties, both formats against the module."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import timm
import torch
from torch import nn

from headsmith.core.errors import InputError
from headsmith.export import Classifier, ExportError, open_model
from headsmith.export.formats.exported_program_format import write_exported_program
from headsmith.export.formats.onnx_format import linear_graph, write_onnx
from headsmith.export.formats.torchscript_format import quiet_torchscript, write_torchscript
from headsmith.export.formats.tracing import traced_graph
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear, load_backbone

LABELS = ("cat", 'a,"b"', "<script>", "😀", "Ä", "10")
WRITERS = {".onnx": write_onnx, ".ts": write_torchscript, ".pt2": write_exported_program}


@pytest.fixture(scope="module")
def backbone(tiny_backbone):
    return load_backbone(
        tiny_backbone.backbone, checkpoint=tiny_backbone.checkpoint, image_size=tiny_backbone.image_size
    )


@pytest.fixture(scope="module")
def head(backbone):
    head = Linear(backbone.feature_dim, len(LABELS))
    nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(1))
    nn.init.normal_(head.bias, generator=torch.Generator().manual_seed(2))
    return head


def metadata(backbone, input_format, labels=LABELS):
    return Metadata(
        labels, input_format, backbone.preprocessing, identity(backbone.record(), backbone.feature_dim), "feature set"
    )


@pytest.fixture(scope="module", params=["float-nchw", "uint8-nhwc", "features"])
def written(request, backbone, head, tmp_path_factory):
    """(classifier, metadata, folder) with model.onnx, model.ts and model.pt2."""
    input_format = request.param
    classifier = Classifier(head, None if input_format == "features" else backbone, input_format)
    about, folder = metadata(backbone, input_format), tmp_path_factory.mktemp(input_format)
    for suffix, write in WRITERS.items():
        write(classifier, about, folder / f"model{suffix}")
    return classifier, about, folder


def random_inputs(about, n):
    generator = np.random.default_rng(3)
    if about.head_only:
        return generator.normal(size=(n, about.backbone.feature_dim)).astype(np.float32)
    return generator.integers(0, 256, (n, *about.preprocessing.crop_size, 3), dtype=np.uint8)


@pytest.mark.parametrize("suffix", WRITERS)
def test_any_batch_answers_as_the_module(written, suffix):
    classifier, about, folder = written
    model = open_model(folder / f"model{suffix}")
    for batch in (1, 2, 3, 7, 8):
        inputs = random_inputs(about, batch)
        with torch.inference_mode():
            expected = classifier(torch.from_numpy(model.feed(inputs)))
        found = model.run(inputs)
        np.testing.assert_allclose(found.logits, expected.logits.numpy(), atol=1e-5)
        np.testing.assert_allclose(found.topk_scores, expected.topk_scores.numpy(), atol=1e-5)
        np.testing.assert_array_equal(found.topk_indices, expected.topk_indices.numpy())


def test_onnx_has_operators_that_opset_17_has(written):
    nodes = onnx.load(written[2] / "model.onnx").graph.node
    assert {node.op_type for node in nodes if onnx.defs.get_schema(node.op_type, 18).since_version > 17} == set()


def test_onnx_says_what_it_is(written):
    _, about, folder = written
    model = onnx.load(folder / "model.onnx")
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 18)]
    assert model.ir_version <= 10
    assert [value.name for value in model.graph.input] == [about.input_name]
    assert [value.name for value in model.graph.output] == ["logits", "topk_scores", "topk_indices"]
    for value in (*model.graph.input, *model.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
    props = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(props["labels"]) == list(LABELS)
    assert json.loads(props["preprocessing"]) == about.preprocessing.to_dict()
    assert props["preprocessing_sha256"] == about.preprocessing.digest
    assert props["backbone_weights_sha256"] == about.backbone.weights_sha256
    assert props["feature_set"] == "feature set"
    assert props["input_format"] == about.input_format


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_file_tells_nothing_of_the_machine(written, suffix):
    _, _, folder = written
    content = (folder / f"model{suffix}").read_bytes()
    assert b"site-packages" not in content
    assert b".py" not in content


@pytest.mark.parametrize("suffix", WRITERS)
def test_metadata_come_back(written, suffix):
    _, about, folder = written
    assert open_model(folder / f"model{suffix}").metadata == about


def test_weights_are_the_trained_ones(head, written):
    """Every weight of the head stands in the file, bit for bit."""
    _, _, folder = written
    stored = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "model.onnx").graph.initializer]
    for parameter in head.parameters():
        expected = parameter.detach().numpy()
        assert any(array.shape == expected.shape and np.array_equal(array, expected) for array in stored)


@pytest.mark.parametrize("suffix", WRITERS)
def test_ties_go_to_the_lower_index_in_the_file(suffix, backbone, tmp_path):
    head = Linear(backbone.feature_dim, 1000)
    with torch.no_grad():
        head.weight[:, 0] = torch.arange(1000) % 7
    about = metadata(backbone, "features", tuple(f"class {index}" for index in range(1000)))
    WRITERS[suffix](Classifier(head), about, tmp_path / f"model{suffix}")
    inputs = np.zeros((2, backbone.feature_dim), dtype=np.float32)
    inputs[1, 0] = 1
    found = open_model(tmp_path / f"model{suffix}").run(inputs).topk_indices
    assert found.tolist() == [[0, 1, 2, 3, 4], [6, 13, 20, 27, 34]]


class Spelled(Linear):
    """A head whose batch is a Python number of the example."""

    def forward(self, features):
        return super().forward(features) + torch.zeros(2, 1)


def test_a_fixed_batch_is_refused(backbone, tmp_path):
    with pytest.raises(ExportError, match="batch"):
        write_onnx(Classifier(Spelled(4, 3)), metadata(backbone, "features"), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


class Reshaping(Linear):
    """A head that reshapes by its batch, as detection code does."""

    def forward(self, features):
        return super().forward(features.reshape(features.shape[0], 2, -1).flatten(1))


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_network_that_reads_its_batch_stays_free(suffix, backbone, tmp_path):
    classifier = Classifier(Reshaping(backbone.feature_dim, len(LABELS)))
    WRITERS[suffix](classifier, metadata(backbone, "features"), tmp_path / f"model{suffix}")
    model = open_model(tmp_path / f"model{suffix}")
    assert [len(model.run(np.zeros((n, backbone.feature_dim), np.float32)).logits) for n in (1, 2, 7)] == [1, 2, 7]


@pytest.mark.parametrize("opset", [17, 999])
def test_an_opset_that_cannot_be_written(opset, backbone, tmp_path):
    with pytest.raises(InputError, match=f"opset {opset}: expected 18 .* to "):
        write_onnx(Classifier(Linear(4, 6)), metadata(backbone, "features"), tmp_path / "model.onnx", opset=opset)


def test_another_opset(backbone, tmp_path):
    classifier = Classifier(Linear(backbone.feature_dim, len(LABELS)))
    write_onnx(classifier, metadata(backbone, "features"), tmp_path / "model.onnx", opset=20)
    assert onnx.load(tmp_path / "model.onnx").opset_import[0].version == 20
    assert open_model(tmp_path / "model.onnx").run(np.zeros((3, backbone.feature_dim))).logits.shape == (3, 6)


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_transformer_that_checks_its_image_size(suffix, tmp_path):
    """Its checks make constants of height and width, never of the batch."""
    torch.manual_seed(0)
    torch.save(timm.create_model("test_vit").state_dict(), tmp_path / "vit.pth")
    backbone = load_backbone("timm:test_vit", checkpoint=tmp_path / "vit.pth")
    head = Linear(backbone.feature_dim, len(LABELS))
    nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(4))
    classifier, about = Classifier(head, backbone), metadata(backbone, "float-nchw")
    WRITERS[suffix](classifier, about, tmp_path / f"model{suffix}")
    model = open_model(tmp_path / f"model{suffix}")
    inputs = random_inputs(about, 7)
    with torch.inference_mode():
        expected = classifier(torch.from_numpy(model.feed(inputs))).logits.numpy()
    largest = np.abs(expected).max()  # about 17: float32 has no 1e-5 left there
    for batch in (1, 2, 7):
        np.testing.assert_allclose(model.run(inputs[:batch]).logits / largest, expected[:batch] / largest, atol=1e-5)


def test_plain_onnxruntime_needs_nothing_of_ours(written):
    _, about, folder = written
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    fed = np.zeros((3, *session.get_inputs()[0].shape[1:]), np.uint8 if "uint8" in about.input_format else np.float32)
    logits, scores, indices = session.run(None, {about.input_name: fed})
    assert (logits.shape, scores.shape, indices.shape) == ((3, 6), (3, 5), (3, 5))
    assert session.get_modelmeta().custom_metadata_map["labels"].count("😀") == 1


def test_plain_libtorch_needs_nothing_of_ours(written):
    classifier, _, folder = written
    with quiet_torchscript():
        module = torch.jit.load(folder / "model.ts")
    logits, _, _ = module(classifier.example(3))
    np.testing.assert_allclose(logits.numpy(), classifier(classifier.example(3)).logits.numpy(), atol=1e-5)


@pytest.mark.parametrize("classes", [3, 1000])
@pytest.mark.parametrize("probabilities", [False, True])
def test_a_linear_head_alone_is_the_graph_that_torch_traces(classes, probabilities):
    head = Linear(16, classes)
    for parameter in head.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    classifier = Classifier(head, probabilities=probabilities)
    features = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    described, answered = [], []
    for model in (linear_graph(classifier, 18), traced_graph(classifier, "features", 18)):
        onnx.checker.check_model(model, full_check=True)
        graph = onnx.shape_inference.infer_shapes(model).graph
        ends = [(value.name, value.type) for value in (*graph.input, *graph.output)]
        described.append((sorted(node.op_type for node in graph.node), ends, model.ir_version, model.opset_import))
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        answered.append(session.run(None, {"features": features}))
    assert described[0] == described[1]
    for own, peer in zip(*answered, strict=True):
        np.testing.assert_array_equal(own, peer)

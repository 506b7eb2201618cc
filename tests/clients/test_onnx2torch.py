"""onnx2torch, which knows operators as they were up to opset 17, reads exported files."""

import numpy as np
import onnx
import onnxruntime
import pytest
import timm
import torch
import torchvision

from headsmith.export import Classifier
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear, load_backbone

onnx2torch = pytest.importorskip("onnx2torch", reason="what reads here is of the extra `test`")
BUILD = {"timm": timm.create_model, "torchvision": torchvision.models.get_model}


def compare(path, inputs):
    """Hold every output to onnxruntime's; a TopK gives values beside its indices there."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: inputs})
    found = onnx2torch.convert(onnx.load(path))(torch.from_numpy(inputs))
    found = [output[1] if isinstance(output, tuple) else output for output in found]
    assert np.ptp(expected[0], axis=0).max() > 1e-3
    for one, other in zip(expected[:2], found[:2], strict=True):
        np.testing.assert_allclose(other.detach().numpy(), one, rtol=1e-5, atol=1e-5 * np.abs(one).max())
    np.testing.assert_array_equal(found[2].numpy(), expected[2])


def test_lite0(glyphs):
    compare(glyphs.bundle.path / "model.onnx", glyphs.pixels[:3].transpose(0, 3, 1, 2).astype(np.float32))


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_head_alone(probabilities, glyphs, tmp_path):
    head = Linear(40, 30)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    about = glyphs.bundle.open().metadata
    about = Metadata(about.labels, "features", about.preprocessing, about.backbone, "feature set")
    write_onnx(Classifier(head, probabilities=probabilities), about, tmp_path / "model.onnx")
    compare(tmp_path / "model.onnx", np.random.default_rng(0).normal(size=(7, 40)).astype(np.float32))


@pytest.mark.filterwarnings("ignore:Using a non-tuple", "ignore:Truncating the start")  # of its Slice
@pytest.mark.parametrize("spec", ["timm:test_mambaout", "torchvision:squeezenet1_0"])
def test_a_network(spec, tmp_path):
    """Layer norms, and a Split that is written as Slices; a pooling at the end."""
    kind, name = spec.split(":")
    torch.manual_seed(0)
    torch.save(BUILD[kind](name).state_dict(), tmp_path / "net.pth")
    backbone = load_backbone(spec, checkpoint=tmp_path / "net.pth")
    head = Linear(backbone.feature_dim, 6)
    torch.nn.init.normal_(head.weight)
    about = Metadata(
        tuple("abcdef"), "uint8-nhwc", backbone.preprocessing, identity(backbone.record(), 6), "feature set"
    )
    classifier = Classifier(head, backbone, "uint8-nhwc")
    write_onnx(classifier, about, tmp_path / "model.onnx")
    compare(
        tmp_path / "model.onnx", np.random.default_rng(0).integers(0, 256, (3, *classifier.example_shape), np.uint8)
    )

"""Every kind of head is exported, alone and behind its backbone, with its normalisation in the weights."""

import dataclasses
import json

import numpy as np
import onnx
import pytest
import torch

from headsmith.export import Classifier, export_classifier
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.runtime import open_model
from headsmith.models import build_head
from headsmith.trainer import FeatureSet

KINDS = {
    "standard": ("norm_linear", {"norm": "standard"}),
    "layer": ("norm_linear", {"norm": "layer"}),
    "cosine": ("cosine", {}),
    "mlp": ("mlp", {"hidden": 8}),
}


@pytest.fixture(params=KINDS)
def run(request, tiny_run):
    """`tiny_run` with another kind of head, random and in need of what it normalises."""
    kind, options = KINDS[request.param]
    head = build_head(kind, 96, 6, **options)
    features, _ = FeatureSet.load(tiny_run.record.features.path).arrays("train")
    generator = torch.Generator().manual_seed(0)
    for parameter in head.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)
    if options.get("norm") == "standard":
        head.fit_statistics(features.float().mean(0), features.float().std(0))
    unscored = dataclasses.replace(tiny_run.record.results, test=None)  # what it says of accuracy is of another head
    record = dataclasses.replace(tiny_run.record, results=unscored)
    return dataclasses.replace(tiny_run, head=head.eval(), record=record)


@pytest.mark.parametrize("head_only", [False, True])
def test_it_is_exported_and_proved(run, head_only, tmp_path):
    bundle = export_classifier(run, out=tmp_path / "b", formats=("onnx", "torchscript"), head_only=head_only)
    assert bundle.manifest.head.kind == run.head.kind
    assert bundle.manifest.head.options == run.head.options
    assert f"{run.head.kind} head was trained" in (bundle.path / "README.md").read_text()
    for format in ("onnx", "torchscript"):
        assert bundle.open(format).metadata.head == run.head.kind
    report = json.loads((bundle.path / "parity.json").read_text())
    assert all(file["passed"] and file["largest_logit"] > 0.1 for file in report["files"].values())


BEFORE = {
    "linear": [],
    "standard": [],
    "layer": ["LayerNormalization"],
    "unit": ["ReduceL2", "Clip", "Div"],
    "cosine": ["ReduceL2", "Clip", "Div"],
}


@pytest.mark.parametrize("name", BEFORE)
def test_the_normalisation_is_in_the_weights(name, tiny_bundle, tmp_path):
    """One product, as a linear head has; before it nothing but what depends on the row."""
    kind, options = {"linear": ("linear", {}), "unit": ("norm_linear", {"norm": "unit"}), **KINDS}[name]
    head = build_head(kind, 96, 6, **options)
    for parameter in head.parameters():
        parameter.data += torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    about = dataclasses.replace(tiny_bundle.open().metadata, input_format="features")
    write_onnx(Classifier(head).folded(), about, tmp_path / "model.onnx")
    nodes = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert nodes == [*BEFORE[name], "Gemm", "TopK", "Softmax", "GatherElements"]
    features = np.random.default_rng(0).normal(size=(7, 96)).astype(np.float32)
    found = open_model(tmp_path / "model.onnx").run(features).logits
    np.testing.assert_allclose(found, head(torch.from_numpy(features)).detach().numpy(), atol=1e-5, rtol=1e-5)

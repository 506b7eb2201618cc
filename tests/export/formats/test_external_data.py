"""Weights beside an ONNX file: they belong to the bundle, and are read from its folder alone."""

import shutil

import numpy as np
import onnx
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.export import Bundle, Classifier, export_classifier
from headsmith.export.formats.onnx_format import write_onnx
from headsmith.export.formats.registry import FORMATS
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear
from headsmith.models.execution_provider import CPU


def test_external_data(tmp_path, monkeypatch):
    """B21, with the threshold at 1 MB: a head of 8 MB."""
    monkeypatch.setattr("headsmith.export.formats.onnx_format.EXTERNAL_ABOVE", 1_000_000)
    head = Linear(2048, 1000)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    about = Metadata(tuple(map(str, range(1000))), "features", None, identity(None, 2048), "features")
    write_onnx(Classifier(head), about, tmp_path / "model.onnx")
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes["model.onnx.data"] >= 4 * 2048 * 1000
    assert sizes["model.onnx"] < 100_000
    model = FORMATS["onnx"].open(tmp_path / "model.onnx", CPU, 1)
    features = np.random.default_rng(0).normal(size=(3, 2048)).astype(np.float32)
    with torch.inference_mode():
        expected = head(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(model.run(features).logits, expected, atol=1e-3)
    write_onnx(Classifier(head), about, tmp_path / "model.onnx")
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == sizes


@pytest.fixture(scope="module")
def large(tiny_run, tmp_path_factory):
    """A bundle of a head whose weights lie beside the file and beside Triton's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headsmith.export.formats.onnx_format.EXTERNAL_ABOVE", 1000)
        out = tmp_path_factory.mktemp("large") / "tiny"
        return export_classifier(tiny_run, out=out, head_only=True, formats=("onnx", "triton"))


@pytest.fixture
def external(large, tmp_path):
    return shutil.copytree(large.path, tmp_path / "tiny")


def test_external_data_belong_to_the_bundle(external):
    assert {"model.onnx.data", "triton/tiny/1/model.onnx.data"} < set(Bundle.load(external).manifest.files)
    (external / "model.onnx.data").write_bytes(b"\0" * (external / "model.onnx.data").stat().st_size)
    with pytest.raises(InputError, match=r"model\.onnx\.data: not the file that manifest\.json lists"):
        Bundle.load(external)


def test_external_data_that_are_missing(external):
    (external / "model.onnx.data").unlink()
    with pytest.raises(InputError, match=r"model\.onnx\.data: missing, but model\.onnx has weights in it") as caught:
        FORMATS["onnx"].open(external / "model.onnx", CPU, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("location", ["../elsewhere.data", "absolute"])
def test_external_data_elsewhere_are_refused(external, tmp_path, location):
    path, target = external / "model.onnx", tmp_path / "elsewhere.data"
    shutil.move(external / "model.onnx.data", target)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = str(target) if location == "absolute" else location
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"model\.onnx: weights '.*': lie in .*outside of the file's folder"):
        FORMATS["onnx"].open(path, CPU, 1)

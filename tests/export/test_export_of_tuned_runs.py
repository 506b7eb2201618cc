"""A network whose backbone learnt too, on its way to a deployed file."""

import json

import numpy as np
import onnxruntime
import pytest

from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, predict
from headsmith.export import export_classifier, verify
from headsmith.trainer import extract, finetune


@pytest.fixture(scope="module")
def tuned(tiny_run, tmp_path_factory):
    """`tiny_run` fine-tuned, so fast that every answer of the backbone is another."""
    photos = tiny_run.record.features.source.source
    out = tmp_path_factory.mktemp("tuned") / "run"
    return finetune(
        photos, out=out, start=str(tiny_run.path), epochs=2, learning_rate=1e-3, batch_size=48, device="cpu"
    )


def test_its_files_pass_the_proof_and_are_measured(tuned, tiny_run, tmp_path):
    bundle = export_classifier(tuned, out=tmp_path / "bundle")
    assert bundle.manifest.parity["model.onnx"].passed
    assert bundle.manifest.accuracy["model.onnx"].top1.correct == tuned.record.results.test.hits
    assert bundle.manifest.backbone.weights_sha256 != tiny_run.record.backbone.weights_sha256
    card = (bundle.path / "README.md").read_text()
    assert "RGB images through a `timm:test_resnet` backbone that was fine-tuned; its linear head" in card
    assert "the network on the test images, when trained" in card
    assert str(tmp_path) not in json.dumps(json.loads((bundle.path / "manifest.json").read_text()))
    verify(bundle.path).check()
    photos = tuned.record.features.source.source
    (result,) = evaluate_classifiers([bundle.path], data=photos, out=tmp_path / "results")
    assert result.top1.correct == tuned.record.results.test.hits
    assert len(predict(bundle.path, [f"{photos}/cat"])) == 20


def test_a_head_alone_is_proved_with_features_of_its_own_backbone(tuned, tmp_path):
    with pytest.raises(InputError, match="a fine-tuned run keeps none: extract them with `headsmith extract"):
        export_classifier(tuned, out=tmp_path / "none", head_only=True)
    photos = tuned.record.features.source.source
    features = extract(photos, out=tmp_path / "features", backbone=str(tuned.path))
    bundle = export_classifier(tuned, out=tmp_path / "bundle", head_only=True, data=features.path)
    rows, labels = features.arrays("test")
    session = onnxruntime.InferenceSession(bundle.path / "model.onnx", providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"features": rows.float().numpy()})
    assert int(np.sum(logits.argmax(1) == labels.numpy())) == tuned.record.results.test.hits


def test_a_temperature_needs_features(tuned, tmp_path):
    with pytest.raises(InputError, match="calibrate: fits on the features .* a fine-tuned run keeps none"):
        export_classifier(tuned, out=tmp_path / "bundle", calibrate=True)

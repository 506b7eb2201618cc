"""Features that somebody else computed: trained, exported as a head, measured."""

import json

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers
from headsmith.export import Bundle, export_classifier
from headsmith.trainer import FeatureSet, import_features, train

QUICK = {"epochs": 5, "learning_rate": 0.01, "device": "cpu"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    pixels, labels = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", features=pixels.astype(np.float32), labels=labels)
    features = import_features([folder / "digits.npz"], out=folder / "features")
    return train(features, out=folder / "run", **QUICK)


def test_a_head_without_a_backbone_is_exported_and_answers_as_it_was_trained(run, tmp_path):
    bundle = export_classifier(run, out=tmp_path / "bundle", formats=("onnx", "torchscript"), head_only=True)
    features = FeatureSet.load(run.record.features.path)
    rows, labels = features.arrays("test")
    session = onnxruntime.InferenceSession(bundle.path / "model.onnx", providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"features": rows.float().numpy()})[0]
    test = run.record.results.test
    assert (logits.argmax(1) == labels.numpy()).mean() == pytest.approx(test.top1)
    assert test.top1 > 0.85
    assert bundle.manifest.backbone is None
    assert "not named (the features were imported)" in (bundle.path / "README.md").read_text()
    assert json.loads(session.get_modelmeta().custom_metadata_map["preprocessing"]) is None
    (result,) = evaluate_classifiers(Bundle.load(bundle.path), data=features.path)
    assert (result.n, result.top1.value) == (test.n, pytest.approx(test.top1))


def test_without_a_backbone_there_is_no_classifier_of_images(run, tmp_path):
    with pytest.raises(InputError, match="imported without their backbone.*`head_only`, or import .* with `backbone`"):
        export_classifier(run, out=tmp_path / "bundle")
    assert not list(tmp_path.iterdir())


def test_features_of_another_length_or_backbone_are_refused(run, tiny_run, tmp_path):
    other = FeatureSet.from_arrays(np.random.default_rng(0).normal(size=(40, 7)), np.arange(40) % 2, out=tmp_path / "o")
    with pytest.raises(InputError, match=r"an unknown backbone \(D = 7\).*an unknown backbone \(D = 64\)"):
        export_classifier(run, out=tmp_path / "bundle", head_only=True, data=other.path)
    with pytest.raises(InputError, match=r"features of timm:test_resnet .*trained on those of an unknown backbone"):
        export_classifier(run, out=tmp_path / "b", head_only=True, data=tiny_run.record.features.path)


def test_a_backbone_that_the_user_names_makes_a_whole_classifier(tiny_run, tiny_backbone, tmp_path):
    """The features that `extract` made, as a bare file: the exported classifier is as good as with the feature set."""
    known = FeatureSet.load(tiny_run.record.features.path)
    columns = {}
    for split in known.splits:
        rows, labels = known.arrays(split)
        columns |= {f"{split}_x": rows.numpy(), f"{split}_y": np.array(known.class_names)[labels.numpy()]}
    np.savez(tmp_path / "bare.npz", **columns)
    named = import_features([tmp_path / "bare.npz"], out=tmp_path / "features", **tiny_backbone._asdict())
    assert named.manifest.backbone.feature_dim == 96
    again = train(named, out=tmp_path / "run", epochs=60, learning_rate=0.05, patience=60, device="cpu")
    with pytest.raises(InputError, match="imported, so their images are not known; name held-out images with `data`"):
        export_classifier(again, out=tmp_path / "bundle")
    images = known.manifest.source.source
    bundle = export_classifier(again, out=tmp_path / "bundle", data=images)
    assert bundle.manifest.accuracy["model.onnx"].top1.value > 0.8
    with pytest.raises(InputError, match=r"test_resnet: gives features of D = 96, the files have D = 3"):
        np.savez(tmp_path / "short.npz", x=np.zeros((4, 3)), y=[0, 1, 0, 1])
        import_features([tmp_path / "short.npz"], out=tmp_path / "short", **tiny_backbone._asdict())


def test_arrays_in_memory_train_and_the_head_is_proved_on_them(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    features = FeatureSet.from_arrays(pixels.astype(np.float32), labels)
    run = train(features, out=tmp_path / "run", **QUICK)
    with pytest.raises(InputError, match=r"\(in memory\): the feature set .* was not found; name one with `data`"):
        export_classifier(run, out=tmp_path / "bundle", head_only=True)
    bundle = export_classifier(run, out=tmp_path / "bundle", head_only=True, data=features)
    assert bundle.manifest.accuracy["model.onnx"].top1.value > 0.85


def test_no_command_calls_rows_of_embeddings_images(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = run.record.features.path
    said = {}
    for line in (
        f"inspect {features}",
        f"train {features} --epochs 2 --device cpu --out run",
        "export run --head-only --out bundle",
        f"evaluate bundle --data {features} --out results",
        "report results --out page.html",
    ):
        command = line.partition(" ")[0]
        ended = CliRunner().invoke(app, line.split())
        assert ended.exit_code == 0, ended.output
        said[command] = ended.output
        assert "image" not in ended.output, command
    assert "rows" in said["train"]
    assert "rows/s" in said["evaluate"]
    assert f"{run.record.results.test.n} rows, " in said["evaluate"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "held-out rows" in page
    assert "held-out images" not in page
    ((index,),) = (result.to_model_index() for result in evaluate_classifiers("bundle", data=features, out="results"))
    assert {one["task"]["type"] for one in index["results"]} == {"tabular-classification"}

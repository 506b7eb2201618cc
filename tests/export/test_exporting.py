"""From a run to a bundle: proved, whole, or not there at all."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
import timm
import torch
from PIL import Image

import headsmith.export.exporting as exporting
import headsmith.export.formats.onnx_format as onnx_format
from headsmith.core.errors import InputError
from headsmith.core.files import sha256_file
from headsmith.core.records import to_json
from headsmith.evaluate import predict
from headsmith.export import Bundle, ParityError, export_classifier
from headsmith.export.bundle.manifest import HeadRecord
from headsmith.export.formats.onnx_runtime import OnnxModel
from headsmith.export.formats.torchscript_format import TorchScriptModel
from headsmith.export.parity.training_check import RecordedAccuracy
from headsmith.models import Linear, backbone_from_record
from headsmith.models.heads import save_head
from headsmith.trainer import FeatureSet, Run
from headsmith.trainer.scores import SplitScores


@pytest.fixture
def out(tmp_path):
    return tmp_path / "bundles" / "tiny"


def nothing_left(out):
    return not out.exists() and (not out.parent.exists() or not list(out.parent.iterdir()))


def test_every_held_out_image_agrees(tiny_run, tiny_bundle):
    report = json.loads((tiny_bundle.path / "parity.json").read_text())
    assert report["cached_features_relative_difference"] < 2e-3
    for name in ("model.onnx", "model.ts"):
        file = report["files"][name]
        assert file["n"] == tiny_run.record.results.test.n == 12
        assert (file["equal_top1"], file["equal_topk"], file["flips"]) == (12, 12, [])
        assert file["max_abs_difference"] < 1e-4
        assert set(file["batches"]) == {"1", "2", "3", "5", "7", "12", "64", "67"}
        summary = tiny_bundle.manifest.parity[name]
        assert (summary.n, summary.top1_equal, summary.topk_equal, summary.flips) == (12, 1.0, 1.0, 0)


def test_manifest(tiny_run, tiny_bundle):
    manifest = tiny_bundle.manifest
    sha256 = sha256_file(tiny_run.path / "head.safetensors")
    assert manifest.head == HeadRecord("linear", {}, in_features=96, num_classes=6, sha256=sha256)
    assert manifest.training["loss"] == "softmax"
    assert manifest.features.fingerprint == tiny_run.record.features.fingerprint
    assert manifest.input.shape == ("batch", 3, 32, 32)
    network = timm.create_model("test_resnet", num_classes=0)
    assert manifest.parameters == sum(p.numel() for p in network.parameters()) + 96 * 6 + 6
    assert manifest.accuracy["model.onnx"].top1.n == 12
    assert tiny_bundle.preprocessing.digest == manifest.preprocessing_sha256


def test_the_cards_code_runs_and_agrees(tiny_bundle, tmp_path, monkeypatch, capsys):
    """Somebody with onnxruntime, numpy and PIL and nothing of ours copies the card's code and gets our labels."""
    code = re.search(r"```python\n(.*?)```", (tiny_bundle.path / "README.md").read_text(), re.DOTALL).group(1)
    shutil.copy(tiny_bundle.path / "model.onnx", tmp_path)
    for number, size in enumerate([(61, 40), (33, 90), (32, 32), (50, 50)]):
        pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        image = Image.fromarray(pixels)
        exif = image.getexif()
        exif[0x0112] = 1 + 5 * (number % 2)
        image.save(tmp_path / "photo.jpg", exif=exif)
        monkeypatch.chdir(tmp_path)
        exec(compile(code, "card", "exec"), {})  # noqa: S102
        (expected,) = predict(tiny_bundle, [tmp_path / "photo.jpg"])
        found = eval(capsys.readouterr().out)  # noqa: S307
        assert [label for label, _ in found] == list(expected.labels)
        np.testing.assert_allclose([score for _, score in found], expected.scores, atol=1e-6)


def test_the_cards_numbers_are_the_files(tiny_bundle):
    card = (tiny_bundle.path / "README.md").read_text()
    top1 = tiny_bundle.manifest.accuracy["model.onnx"].top1
    assert f"{100 * top1.value:.2f} % ({100 * top1.low:.2f} to {100 * top1.high:.2f})" in card
    assert "TorchScript is deprecated" in card
    assert "| `model.ts` | 12 | 12 | 12 |" in card


def test_uint8_and_its_card(tiny_run, out, tmp_path, monkeypatch, capsys):
    bundle = export_classifier(tiny_run, out=out, input_format="uint8-nhwc")
    assert to_json(bundle.manifest.input) == {
        "name": "pixel_values",
        "format": "uint8-nhwc",
        "dtype": "uint8",
        "shape": ["batch", 32, 32, 3],
        "resize": False,
    }
    code = re.search(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL).group(1)
    Image.new("RGB", (50, 40), (200, 30, 90)).save(out / "photo.jpg")
    monkeypatch.chdir(out)
    exec(compile(code, "card", "exec"), {})  # noqa: S102
    found = eval(capsys.readouterr().out)  # noqa: S307
    assert [label for label, _ in found] == list(predict(bundle, [out / "photo.jpg"])[0].labels)


def test_head_alone(tiny_run, out):
    bundle = export_classifier(tiny_run, out=out, head_only=True, formats=("onnx", "torchscript"))
    features = np.random.default_rng(0).normal(size=(16, 96)).astype(np.float32)
    with torch.inference_mode():
        expected = tiny_run.head(torch.from_numpy(features)).numpy()
    for name in ("onnx", "torchscript"):
        np.testing.assert_allclose(bundle.open(name).run(features).logits, expected, rtol=1e-5, atol=1e-5)
    assert "pixel_values" not in (out / "README.md").read_text()


def test_a_run_without_its_head(tiny_run, out, tmp_path):
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    (run / "head.safetensors").unlink()
    with pytest.raises(InputError, match=r"head\.safetensors: not found"):
        export_classifier(run, out=out)
    assert nothing_left(out)


def test_a_run_of_another_head(tiny_run, out, tmp_path):
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    save_head(Linear(96, 6), run / "head.safetensors")
    with pytest.raises(InputError, match="hash differs"):
        export_classifier(run, out=out)


def with_features(run, **changes):
    features = dataclasses.replace(run.record.features, **changes)
    return dataclasses.replace(run, record=dataclasses.replace(run.record, features=features))


def test_images_that_moved(tiny_run, tiny_bundle, out, tmp_path):
    source = tiny_run.record.features.source
    moved = with_features(tiny_run, source=dataclasses.replace(source, source=str(tmp_path / "gone")))
    with pytest.raises(InputError, match=r"cannot be opened .* name held-out images with `data`"):
        export_classifier(moved, out=out)
    assert nothing_left(out)
    copy = shutil.copytree(source.source, tmp_path / "copy")
    bundle = export_classifier(moved, out=out, data=copy)
    assert bundle.manifest.held_out.fingerprint == tiny_bundle.manifest.held_out.fingerprint
    assert bundle.manifest.held_out.n == 12


def test_features_that_are_gone_are_not_needed(tiny_run, out, tmp_path):
    export_classifier(with_features(tiny_run, path=str(tmp_path / "gone")), out=out)
    assert json.loads((out / "parity.json").read_text())["cached_features_relative_difference"] is None


def test_existing_out_is_kept(tiny_run, out):
    out.mkdir(parents=True)
    (out / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="exists already"):
        export_classifier(tiny_run, out=out)
    with pytest.raises(InputError, match=r"holds no parity\.json, so it is not replaced"):
        export_classifier(tiny_run, out=out, overwrite=True)
    assert (out / "mine.txt").read_text() == "keep"


def test_a_bundle_is_replaced_when_told(tiny_run, out):
    export_classifier(tiny_run, out=out, head_only=True)
    (out / "mine.txt").write_text("old")
    export_classifier(tiny_run, out=out, head_only=True, overwrite=True)
    assert not (out / "mine.txt").exists()
    assert Bundle.load(out).head_only


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_is_none(tiny_run, out, tolerance):
    with pytest.raises(InputError, match="tolerance: .* found, expected a number of logits, 0 or more"):
        export_classifier(tiny_run, out=out, tolerance=tolerance)


@pytest.mark.parametrize("formats", [(), ("onnx", "onnx"), ("pt3",), ("onnx", "tflite")])
def test_formats_that_are_unknown(tiny_run, out, formats):
    with pytest.raises(InputError, match="formats"):
        export_classifier(tiny_run, out=out, formats=formats)
    assert nothing_left(out)


def test_an_unknown_input_format(tiny_run, out):
    with pytest.raises(InputError, match="input_format: 'bgr' found, expected one of float-nchw, uint8-nhwc, encoded"):
        export_classifier(tiny_run, out=out, input_format="bgr")


def test_an_impossible_opset_leaves_nothing(tiny_run, out):
    with pytest.raises(InputError, match="opset 999"):
        export_classifier(tiny_run, out=out, head_only=True, opset=999)
    assert nothing_left(out)


def test_a_file_that_differs_fails_and_leaves_nothing(tiny_run, out, monkeypatch):
    """The writer writes an untrained head, as published files once were."""
    write = onnx_format.write_onnx

    def untrained(classifier, metadata, path, opset):
        torch.nn.init.normal_(classifier.head.weight)
        write(classifier, metadata, path, opset=opset)
        classifier.head.load_state_dict(tiny_run.head.state_dict())

    monkeypatch.setattr(onnx_format, "write_onnx", untrained)
    with pytest.raises(ParityError, match="does not answer as the Python module on 12 held-out") as caught:
        export_classifier(tiny_run, out=out)
    assert caught.value.report.different
    assert caught.value.exit_code == 3
    assert nothing_left(out)


@pytest.mark.parametrize("format", ["onnx", "torchscript"])
def test_a_file_that_draws_random_numbers(tiny_run, out, monkeypatch, format):
    """Dropout that was left in training mode, as its file answers."""
    model = {"onnx": OnnxModel, "torchscript": TorchScriptModel}[format]
    answer = model.answer

    def dropping(self, fed):
        found = answer(self, fed)
        return found._replace(logits=torch.dropout(torch.from_numpy(found.logits), 0.5, train=True).numpy())

    monkeypatch.setattr(model, "answer", dropping)
    with pytest.raises(ParityError, match="answers the same input differently each time"):
        export_classifier(tiny_run, out=out, formats=(format,), head_only=True)
    assert nothing_left(out)


def test_a_backbone_that_is_not_the_one_trained_on(tiny_run, out, monkeypatch):
    """Another tap of the same width: every file agrees with the module, and the module is wrong."""

    def other(record):
        backbone = backbone_from_record(record)
        backbone.features = lambda network, images: network.forward_features(images).mean((2, 3)).flip(1)
        return backbone

    monkeypatch.setattr(exporting, "backbone_from_record", other)
    with pytest.raises(ParityError, match="differ from the cached ones"):
        export_classifier(tiny_run, out=out)
    assert nothing_left(out)


def test_interruption_leaves_nothing(tiny_run, out, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "prove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_classifier(tiny_run, out=out, head_only=True)
    assert nothing_left(out)


def test_a_run_folder_by_name(tiny_run, out):
    assert (
        Run.load(tiny_run.path).class_names
        == export_classifier(str(tiny_run.path), out=str(out), head_only=True).class_names
    )


def relabelled(run, folder, order):
    """A run like another one, on a copy of its features whose test rows have labels in another order."""
    features = FeatureSet.load(run.record.features.path)
    rows = {split: features.arrays(split)[0].numpy() for split in features.columns}
    labels = {split: features.arrays(split)[1].numpy() for split in features.columns}
    labels["test"] = labels["test"][order]
    other = FeatureSet.from_arrays(rows, labels, class_names=features.class_names, out=folder)
    other_place = with_features(run, path=str(other.path))
    return dataclasses.replace(other_place, record=dataclasses.replace(other_place.record, backbone=None))


@pytest.mark.parametrize("order", [np.arange(12), np.roll(np.arange(12), 2), np.roll(np.arange(12), 6)])
def test_the_recorded_accuracy_is_that_of_the_proof(tiny_run, tmp_path, out, order):
    """Features of the same shape in the place of those of the training: the head is right about others of them."""
    run = relabelled(tiny_run, tmp_path / "features", order)
    if (order == np.arange(12)).all():
        assert export_classifier(run, out=out, head_only=True).manifest.accuracy["model.onnx"].top1.n == 12
        return
    with pytest.raises(ParityError, match=r"run: the head has \d+ of 12 held-out inputs right, its training said \d+"):
        export_classifier(run, out=out, head_only=True)
    assert nothing_left(out)


def test_images_that_moved_to_other_classes_are_noticed(tiny_run, out):
    """`prove` looks at all labels; the features of the first images alone would be as they were."""

    def said(**changes):
        results = tiny_run.record.results
        test = dataclasses.replace(results.test, top1=0.25, **changes)
        record = dataclasses.replace(tiny_run.record, results=dataclasses.replace(results, test=test))
        return dataclasses.replace(tiny_run, record=record)

    with pytest.raises(ParityError, match="its training said 3, and rounding explains"):
        export_classifier(said(), out=out)
    assert nothing_left(out)
    # One that is unreadable now: other inputs are not compared.
    assert export_classifier(said(n=13), out=out).path == out


@pytest.mark.parametrize(
    ("logits", "said", "passes"),
    [
        ([[5.0, 1.0], [1.0, 5.0], [5.0, 1.0], [5.0, 1.0]], 0.75, True),
        ([[5.0, 1.0], [1.0, 5.0], [5.0, 1.0], [5.0, 1.0]], 1.0, False),
        ([[5.0, 4.95], [1.0, 5.0], [5.0, 1.0], [4.95, 5.0]], 0.75, True),  # two may fall either way
        ([[5.0, 4.95], [1.0, 5.0], [5.0, 1.0], [4.95, 5.0]], 0.25, True),
        ([[5.0, 4.5], [1.0, 5.0], [5.0, 1.0], [4.95, 5.0]], 0.25, True),
        ([[5.0, 4.5], [1.0, 5.0], [5.0, 1.0], [4.95, 5.0]], 0.0, False),
        ([[0.0, 0.0]] * 4, 0.5, True),  # a head of zeros: ties
    ],
)
def test_what_rounding_explains_of_an_accuracy(logits, said, passes):
    found = RecordedAccuracy()
    for half in (slice(0, 2), slice(2, 4)):
        found.add(np.array(logits[half], np.float32), np.zeros(2, np.int64))
    if passes:
        found.check(SplitScores(4, 1.0, said, None, said), "run")
    else:
        with pytest.raises(ParityError, match="run: the head has"):
            found.check(SplitScores(4, 1.0, said, None, said), "run")

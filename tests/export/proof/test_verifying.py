"""`headsmith verify`, and exports in lower precision from a run to a bundle that says what it costs."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
import safetensors.numpy
from PIL import Image
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.files import sha256_file
from headsmith.evaluate import predict
from headsmith.export import GateError, ParityError, export_classifier, verify
from headsmith.export.proof.held_out import Batch
from headsmith.export.proof.reference import METADATA, Recorder, Reference
from headsmith.trainer import FeatureSet

runner = CliRunner()


@pytest.fixture(scope="module")
def int8(tiny_run, tmp_path_factory):
    """The run in int8, whatever that costs, and with a temperature."""
    out = tmp_path_factory.mktemp("int8") / "tiny"
    return export_classifier(tiny_run, out=out, int8=True, max_top1_drop=100, max_top5_drop=100, calibrate=True)


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle.path, tmp_path / "copy")


def source(run):
    return run.record["features"]["source"]["source"]


@pytest.mark.parametrize("with_data", [False, True])
def test_a_bundle_verifies(tiny_bundle, tiny_run, with_data):
    found = verify(tiny_bundle.path, data=source(tiny_run) if with_data else None)
    assert found.passed
    found.check()
    assert found.files.keys() == {"model.onnx", "model.ts"}
    for report in found.files.values():
        assert report.n == report.equal_top1 == (12 if with_data else 6)
        assert report.batches.keys() >= {1, 2, 7}
        assert report.max_abs_difference < 1e-4
    assert found.changed == []
    assert found.versions == found.exported_with


def test_a_lower_precision_verifies_against_itself(int8):
    (report,) = verify(int8).files.values()
    assert report.max_abs_difference == 0
    assert report.allowed_difference == int8.manifest["parity"]["model.onnx"]["max_abs_difference"] > 0


def replace_answers(bundle, change):
    """Change the Python module's answers in a bundle, as if its file answered otherwise here."""
    path = bundle / "reference.safetensors"
    reference = Reference.load(bundle)
    tensors = {f"answers:{name}": change(logits) for name, logits in reference.answers.items()}
    tensors |= {f"inputs:{name}": values for name, values in reference.inputs.items()}
    safetensors.numpy.save_file(tensors, path, {METADATA: json.dumps(reference.digests)})
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][path.name] = {"sha256": sha256_file(path), "bytes": path.stat().st_size}
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_a_file_that_answers_otherwise_here(copy):
    replace_answers(copy, lambda logits: np.ascontiguousarray(logits[:, ::-1]))
    found = verify(copy)
    assert not found.passed
    with pytest.raises(ParityError, match="model.onnx does not answer as the Python module at the export on 6"):
        found.check()
    result = runner.invoke(app, ["verify", str(copy), "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["files"]["model.onnx"]["passed"] is False
    assert "does not answer" in result.stderr


def test_the_table(tiny_bundle):
    result = runner.invoke(app, ["verify", str(tiny_bundle.path)])
    assert result.exit_code == 0
    assert "hashes fit" in result.stdout
    assert result.stdout.count("as exported") == 2


def test_no_batch(tiny_bundle):
    with pytest.raises(InputError, match="--batch-size: 0 found, expected 1 or more"):
        verify(tiny_bundle, batch_size=0)


def test_a_hash_that_does_not_fit(copy):
    with (copy / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"x")
    with pytest.raises(DamagedFileError, match="its hash differs"):
        verify(copy)


def test_a_bundle_without_reference(copy):
    (copy / "reference.safetensors").unlink()
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["files"]["reference.safetensors"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"reference\.safetensors: not found, so there is nothing to compare with"):
        verify(copy)


def test_a_damaged_reference(copy):
    (copy / "reference.safetensors").write_bytes(b"nothing")
    with pytest.raises(DamagedFileError, match="damaged"):
        Reference.load(copy)


def test_other_images(tiny_bundle, image_folder):
    with pytest.raises(InputError, match="has none of the 12 inputs whose answers the bundle carries"):
        verify(tiny_bundle, data=image_folder({"cat": 20}, size=41))


def test_images_that_decode_otherwise_are_named_and_not_compared(tiny_bundle, tiny_run, tmp_path):
    held_out = FeatureSet.load(tiny_run.record["features"]["path"]).ids("test")
    folder = tmp_path / "held_out"
    for sample in held_out:
        (folder / sample).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"{source(tiny_run)}/{sample}", folder / sample)
    image = Image.open(folder / held_out[3]).copy()
    image.putpixel((20, 20), (1, 2, 3))
    image.save(folder / held_out[3])
    found = verify(tiny_bundle, data=folder)
    assert found.changed == [held_out[3]]
    assert found.files["model.onnx"].n == 11
    assert found.passed


def test_what_it_costs_stands_in_bundle_and_card(int8, tiny_run):
    precision, calibration = int8.manifest["precision"], int8.manifest["calibration"]
    assert precision["precision"] == int8.open().metadata.precision == "int8"
    assert precision["full"]["top1"]["n"] == precision["lower"]["top1"]["n"] == tiny_run.record["results"]["val"]["n"]
    assert precision["full"]["top1"]["value"] == tiny_run.record["results"]["val"]["top1"]
    assert calibration["before"]["test"]["nll"] == pytest.approx(tiny_run.record["results"]["test"]["loss"], rel=1e-4)
    assert calibration["after"]["val"]["nll"] <= calibration["before"]["val"]["nll"]
    card = (int8.path / "README.md").read_text()
    assert "`model.onnx` computes in int8" in card
    assert re.search(r"int8 is (not faster here|[\d.]+ times as fast)", card)
    assert f"a temperature of {calibration['temperature']:.4g}" in card
    parity = json.loads((int8.path / "parity.json").read_text())
    assert parity["files"]["fp32/model.onnx"]["passed"]
    assert parity["precision"]["agreement"]["against"] == "the float32 file"
    assert not (int8.path / "fp32").exists()


def test_a_gate_that_fails_leaves_nothing(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("headsmith.export.precision.gates.GateReport.exceeded", lambda self: ["top-1 drops"])
    out = tmp_path / "bundles" / "tiny"
    command = ["export", str(tiny_run.path), "--out", str(out), "--int8-dynamic", "--head-only"]
    result = runner.invoke(app, command)
    assert result.exit_code == 3
    assert "int8-dynamic: top-1 drops. On 12 validation inputs top-1 is" in result.stderr
    assert not list(out.parent.iterdir())
    with pytest.raises(GateError) as caught:
        export_classifier(tiny_run, out=out, int8_dynamic=True, head_only=True)
    assert caught.value.report.precision == "int8-dynamic"


def test_a_lower_precision_is_for_onnx(tiny_run, tmp_path):
    with pytest.raises(InputError, match="--fp16: is for model.onnx; add --format onnx"):
        export_classifier(tiny_run, out=tmp_path / "bundle", fp16=True, formats=("torchscript",))


def test_no_lower_precision_behind_a_decoder(tiny_run, tmp_path):
    pytest.importorskip("onnxruntime_extensions")
    with pytest.raises(InputError, match="--int8: found with --input encoded, expected --input uint8-nhwc --resize"):
        export_classifier(tiny_run, out=tmp_path / "bundle", int8=True, input_format="encoded")


def test_float16_input(tiny_run, tmp_path, monkeypatch, capsys):
    bundle = export_classifier(tiny_run, out=tmp_path / "half", fp16=True, fp16_input=True)
    assert bundle.manifest["input"]["dtype"] == "float16"
    code = re.search(r"```python\n(.*?)```", (bundle.path / "README.md").read_text(), re.DOTALL).group(1)
    Image.new("RGB", (50, 40), (200, 30, 90)).save(bundle.path / "photo.jpg")
    monkeypatch.chdir(bundle.path)
    exec(compile(code, "card", "exec"), {})  # noqa: S102
    found = eval(capsys.readouterr().out)  # noqa: S307
    assert [label for label, _ in found] == list(predict(bundle, [bundle.path / "photo.jpg"])[0].labels)


@pytest.mark.parametrize("gone", [{"path": "nowhere"}, {"fingerprint": "other"}])
def test_no_temperature_without_the_features(tiny_run, tmp_path, gone):
    run = dataclasses.replace(tiny_run, record=tiny_run.record | {"features": tiny_run.record["features"] | gone})
    with pytest.raises(InputError, match="--calibrate: "):
        export_classifier(run, out=tmp_path / "bundle", calibrate=True, data=source(tiny_run))


def test_no_ranges_without_the_training_images(tiny_run, tmp_path, image_folder):
    elsewhere = tiny_run.record["features"]["source"] | {"source": str(tmp_path / "gone")}
    record = tiny_run.record | {"features": tiny_run.record["features"] | {"source": elsewhere}}
    images = image_folder({"cat": 3, "dog": 3})
    with pytest.raises(InputError, match="the images that the features came from cannot be opened"):
        export_classifier(dataclasses.replace(tiny_run, record=record), out=tmp_path / "b", int8=True, data=images)


def test_what_a_bundle_carries_is_bounded(tmp_path):
    recorder = Recorder(600)
    for start in range(0, 600, 64):
        rows = np.arange(start, min(start + 64, 600))
        values = np.repeat(rows.astype(np.float32)[:, None], 300_000, axis=1)  # 1.2 MB each
        recorder.add(Batch(values, rows, [str(row) for row in rows]), {"python": values[:, :3]})
    recorder.save(tmp_path / "reference.safetensors")
    reference = Reference.load(tmp_path)
    assert len(reference.digests) == len(reference.answers["python"]) == 256
    assert [*reference.digests][:: len(reference.digests) - 1] == ["0", "599"]
    assert reference.answers["python"][:, 0].tolist() == [float(name) for name in reference.digests]
    assert 1 < len(reference.inputs) <= 8
    assert sum(values.nbytes for values in reference.inputs.values()) <= 8_000_000

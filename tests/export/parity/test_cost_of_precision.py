"""Exports in lower precision and with a temperature, from a run to a bundle that says what they cost."""

import dataclasses
import json
import re

import onnx
import pytest
from PIL import Image
from scipy.stats import binomtest
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.core.files import read_json, sha256_file
from headsmith.core.records import field_hashes
from headsmith.evaluate import predict
from headsmith.export import GateError, export_classifier, verify
from headsmith.export.bundle.manifest import read_manifest
from headsmith.show import show_bundle

runner = CliRunner()


@pytest.fixture(scope="module")
def int8(tiny_run, tmp_path_factory):
    """The run in int8, whatever that costs, and with a temperature."""
    out = tmp_path_factory.mktemp("int8") / "tiny"
    return export_classifier(tiny_run, out=out, precision="int8", max_drop=100, calibrate=True)


def test_a_lower_precision_verifies_against_itself(int8):
    (report,) = verify(int8).files.values()
    assert report.max_abs_difference == 0
    assert report.allowed_difference == int8.manifest.parity["model.onnx"].max_abs_difference > 0


def test_what_it_costs_stands_in_bundle_and_card(int8, tiny_run):
    precision, calibration = int8.manifest.precision, int8.manifest.calibration
    assert precision.precision == int8.open().metadata.precision == "int8"
    assert precision.full.top1.n == precision.lower.top1.n == tiny_run.record.results.val.n
    assert precision.full.top1.value == tiny_run.record.results.val.top1
    assert calibration.before["test"].nll == pytest.approx(tiny_run.record.results.test.loss, rel=1e-4)
    assert calibration.after["val"].nll <= calibration.before["val"].nll
    card = (int8.path / "README.md").read_text()
    assert "`model.onnx` computes in int8" in card
    assert re.search(r"int8 is (not faster here|[\d.]+ times as fast)", card)
    assert f"a temperature of {calibration.temperature:.4g}" in card
    parity = json.loads((int8.path / "parity.json").read_text())
    assert parity["files"]["fp32/model.onnx"]["passed"]
    assert parity["precision"]["agreement"]["against"] == "the float32 file"
    assert not (int8.path / "fp32").exists()


def test_what_few_validation_images_can_show_is_said(int8, capsys):
    """One of 12 is 8.3 points; scipy calls 6 of 6 at 5 %, and not 5 of 5."""
    assert binomtest(6, 6).pvalue < 0.05 < binomtest(5, 5).pvalue
    precision = int8.manifest.precision
    assert precision.one_input == pytest.approx(100 / 12)
    assert precision.smallest_drop == pytest.approx(50)
    said = (
        "12 validation inputs: one is 8.33 points, and McNemar's exact test would call no drop below 50 points at 5 %"
    )
    show_bundle(int8)
    assert said in capsys.readouterr().out
    assert said in (int8.path / "README.md").read_text()
    assert json.loads((int8.path / "parity.json").read_text())["precision"]["power"] == said


def test_a_bundle_from_before_one_limit_for_both_drops_opens(int8, tmp_path):
    values = read_json(int8.path / "manifest.json")
    del values["precision"]["max_drop"]
    values["precision"]["limits"] = {"max_top1_drop": 2.5, "max_top5_drop": 1.0, "max_flips": None, "weak_gate": False}
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    assert read_manifest(tmp_path / "manifest.json").precision == dataclasses.replace(
        int8.manifest.precision, max_drop=2.5
    )


@pytest.mark.parametrize("precision", ["fp16", "int8", "int8-dynamic"])
def test_a_gate_on_few_images_is_refused_before_anything_is_done(tiny_run, tmp_path, monkeypatch, precision):
    monkeypatch.setattr("headsmith.export.exporting.backbone_from_record", lambda record: pytest.fail("work was done"))
    command = ["export", str(tiny_run.path), "--out", str(tmp_path / "few" / "b"), "--precision", precision]
    result = runner.invoke(app, command)
    assert result.exit_code == 2
    assert f"--precision {precision}: --max-drop: 1 points on 12 validation inputs found" in result.stderr
    assert "expected at least 100 of them, or --max-drop 8.34" in result.stderr
    assert not list((tmp_path / "few").iterdir())


def test_a_gate_that_fails_leaves_nothing(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("headsmith.export.precision.gates.GateReport.exceeded", lambda self: ["top-1 drops"])
    out = tmp_path / "bundles" / "tiny"
    command = ["export", str(tiny_run.path), "--out", str(out), "--precision", "int8-dynamic", "--head-only"]
    command += ["--max-drop", "100"]
    result = runner.invoke(app, command)
    assert result.exit_code == 3
    assert "int8-dynamic: top-1 drops. On 12 validation inputs top-1 is" in result.stderr
    assert not list(out.parent.iterdir())
    with pytest.raises(GateError) as caught:
        export_classifier(tiny_run, out=out, precision="int8-dynamic", head_only=True, max_drop=100)
    assert caught.value.report.precision == "int8-dynamic"


def test_a_lower_precision_is_for_onnx(tiny_run, tmp_path):
    with pytest.raises(InputError, match="precision fp16: is for model.onnx; add `formats` onnx"):
        export_classifier(tiny_run, out=tmp_path / "bundle", precision="fp16", formats=("torchscript",))


def test_no_lower_precision_behind_a_decoder(tiny_run, tmp_path):
    pytest.importorskip("onnxruntime_extensions")
    with pytest.raises(
        InputError,
        match="precision int8: found with `input_format` encoded, expected `input_format` uint8-nhwc `resize`",
    ):
        export_classifier(tiny_run, out=tmp_path / "bundle", precision="int8", input_format="encoded")


def test_an_older_bundle_with_a_float16_input(tiny_run, tmp_path):
    """Which `export` wrote until `--precision` came."""
    bundle = export_classifier(tiny_run, out=tmp_path / "half", precision="fp16", max_drop=100)
    path = bundle.path / "model.onnx"
    model = onnx.load(path)
    (given,) = model.graph.input
    given.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for node in model.graph.node:
        node.input[:] = ["wide" if name == given.name else name for name in node.input]
    model.graph.node.insert(0, onnx.helper.make_node("Cast", [given.name], ["wide"], to=onnx.TensorProto.FLOAT))
    onnx.save(model, path)
    manifest = json.loads((bundle.path / "manifest.json").read_text())
    manifest["input"]["dtype"] = "float16"
    report = json.loads((bundle.path / "parity.json").read_text())
    report["manifest"] = field_hashes(manifest, without=("files", "created"))
    (bundle.path / "parity.json").write_text(json.dumps(report))
    for file in (path, bundle.path / "parity.json"):
        manifest["files"][file.name] = {"sha256": sha256_file(file), "bytes": file.stat().st_size}
    (bundle.path / "manifest.json").write_text(json.dumps(manifest))
    assert verify(bundle.path).passed
    Image.new("RGB", (50, 40), (200, 30, 90)).save(tmp_path / "photo.jpg")
    assert predict(bundle.path, [tmp_path / "photo.jpg"])[0].error is None


@pytest.mark.parametrize("gone", [{"path": "nowhere"}, {"fingerprint": "other"}])
def test_no_temperature_without_the_features(tiny_run, tmp_path, gone):
    features = dataclasses.replace(tiny_run.record.features, **gone)
    run = dataclasses.replace(tiny_run, record=dataclasses.replace(tiny_run.record, features=features))
    with pytest.raises(InputError, match="calibrate: "):
        export_classifier(run, out=tmp_path / "bundle", calibrate=True, data=tiny_run.record.features.source.source)


def test_no_ranges_without_the_training_images(tiny_run, tmp_path, image_folder):
    elsewhere = dataclasses.replace(tiny_run.record.features.source, source=str(tmp_path / "gone"))
    features = dataclasses.replace(tiny_run.record.features, source=elsewhere)
    record = dataclasses.replace(tiny_run.record, features=features)
    images = image_folder({"cat": 3, "dog": 3})
    with pytest.raises(InputError, match="the images that the features came from cannot be opened"):
        export_classifier(
            dataclasses.replace(tiny_run, record=record), out=tmp_path / "b", precision="int8", data=images
        )

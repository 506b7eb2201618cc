"""The four commands of the README on a folder of images, and the demo."""

import csv
import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from sklearn.metrics import top_k_accuracy_score
from typer.testing import CliRunner

from headsmith.cli import app

runner = CliRunner()


def run(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def backbone_flags(tiny_backbone) -> list[object]:
    spec, checkpoint, size = tiny_backbone
    return ["--backbone", spec, "--checkpoint", checkpoint, "--image-size", size]


@pytest.fixture(scope="module")
def project(image_folder, tiny_backbone, tmp_path_factory):
    """A folder with ``photos``' features, run, bundle and results, made by the commands."""
    photos = image_folder(
        {split: {"ant": n, "bee": n, "cow": n} for split, n in (("train", 12), ("val", 4), ("test", 5))}
    )
    (photos / "test" / "bee" / "notes.jpg").write_text("not a photograph")
    root = tmp_path_factory.mktemp("project")
    outputs = {
        "extract": run("extract", photos, "--out", root / "features", *backbone_flags(tiny_backbone)),
        "train": run(
            "train", root / "features", "--loss", "neuralsort", "--p-k", ".5,.5", "--m", "3", "--out", root / "run"
        ),
        "export": run("export", root / "run", "--format", "onnx", "--format", "torchscript", "--out", root / "bundle"),
        "evaluate": run(
            "evaluate", root / "bundle", "--data", photos / "test", "--out", root / "results", "--save-logits"
        ),
    }
    return root, photos, outputs


def test_each_command_says_what_matters(project):
    _, _, outputs = project
    assert "3 classes, D = 96, float16" in outputs["extract"]
    assert "train 36  val 12  test 15" in outputs["extract"]
    assert "test/bee/notes.jpg" in outputs["extract"]
    assert "neuralsort, best epoch" in outputs["train"]
    assert "model.onnx" in outputs["export"]
    assert "model.ts" in outputs["export"]
    assert "n/a" in outputs["evaluate"]  # top-5 of three classes
    assert "on 15 images, CPUExecutionProvider" in outputs["evaluate"]
    assert "bee/notes.jpg" in outputs["evaluate"]


def test_the_accuracy_is_scikit_learns_from_the_files_own_logits(project):
    root, _, _ = project
    (folder,) = (root / "results" / "models").iterdir()
    with np.load(folder / "logits.npz") as saved:
        logits, labels = saved["logits"], saved["labels"]
    results = json.loads((folder / "result.json").read_text())
    top1 = top_k_accuracy_score(labels, logits, k=1, labels=range(3))
    assert results["summary"]["n"] == len(labels) == 15
    assert results["summary"]["top"]["1"]["value"] == top1
    assert results["summary"]["top"]["5"] is None
    with (root / "results" / "results.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["top1"]) == pytest.approx(100 * top1, abs=0.01)


def test_predict_names_labels(project):
    root, photos, _ = project
    photo = next((photos / "test" / "cow").glob("*.png"))
    (prediction,) = json.loads(run("predict", root / "bundle", photo, "--json"))
    assert sorted(prediction["labels"]) == ["ant", "bee", "cow"]
    assert sum(prediction["scores"]) == pytest.approx(1)
    assert "cow" in run("predict", root / "bundle", photo)


def test_json_is_nothing_but_json(project):
    root, photos, _ = project
    found = json.loads(run("evaluate", root / "bundle", "--data", photos / "test", "--k", "1,2", "--json"))
    assert found["models"][0]["summary"]["n"] == found["data"]["n"] - 1 == 15
    assert list(found["models"][0]["summary"]["top"]) == ["1", "2"]


def test_a_second_extraction_finds_the_first(project, tiny_backbone):
    root, photos, _ = project
    before = (root / "features" / "manifest.json").stat().st_mtime_ns
    run("extract", photos, "--out", root / "features", *backbone_flags(tiny_backbone))
    assert (root / "features" / "manifest.json").stat().st_mtime_ns == before


def test_a_head_alone(project):
    root, _, _ = project
    run("export", root / "run", "--head-only", "--out", root / "head")
    assert "on 15" in run("evaluate", root / "head", "--data", root / "features")


def test_the_demo(glyph_demo, monkeypatch):
    figures = []
    monkeypatch.setattr(
        "headsmith.demo.picture.Figure", lambda **options: figures.append(Figure(**options)) or figures[0]
    )
    made = (glyph_demo / "runs" / "softmax-0" / "head.safetensors").stat().st_mtime_ns
    monkeypatch.setattr("headsmith.demo.demo.QUICK", 12)
    output = run("demo", "--quick", "--out", glyph_demo.parent)
    assert "softmax" in output
    assert (glyph_demo / "runs" / "softmax-0" / "head.safetensors").stat().st_mtime_ns == made
    with Image.open(glyph_demo / "demo.png") as picture:
        assert picture.size[0] > 1000
    shown = [text.get_text().replace("\n", " ") for text in figures[0].findobj(Text)]
    names = {path.parent.name.split(" ", 1)[1] for path in (glyph_demo / "glyphs" / "test").glob("*/*.png")}
    assert any(name in text for name in names for text in shown)
    assert {"the right character", "another character"} <= set(shown)
    assert not any("U+" in text for text in shown)
    for head in ("softmax", "lapsum"):
        parity = json.loads((glyph_demo / "bundles" / head / "parity.json").read_text())
        assert parity["held_out"]["n"] == len(list((glyph_demo / "glyphs" / "test").glob("*/*.png")))
        assert all(report["passed"] for report in parity["files"].values())

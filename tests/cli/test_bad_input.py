"""Mistakes that users make: status 2, one line that says what to do, and nothing half written."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from headsmith.cli import app

runner = CliRunner()


def refusal(*arguments: object) -> str:
    """The one line with which a command refuses."""
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.fixture
def flags(tiny_backbone, tmp_path):
    spec, checkpoint, size = tiny_backbone
    return ["--out", tmp_path / "out", "--backbone", spec, "--checkpoint", checkpoint, "--image-size", size]


def empty_class(root: Path) -> None:
    (root / "train" / "elk").mkdir()


def one_class(root: Path) -> None:
    for split in ("train", "val", "test"):
        shutil.rmtree(root / split / "dog")


def unseen_class(root: Path) -> None:
    shutil.copytree(root / "test" / "dog", root / "test" / "elk")


def no_images(root: Path) -> None:
    for path in root.rglob("*.png"):
        path.write_text("text")


def flat(root: Path) -> None:
    for number, path in enumerate(root.rglob("*.png")):
        path.rename(root / f"{number}.png")
    for split in ("train", "val", "test"):
        shutil.rmtree(root / split)


def empty(root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (empty, "no images|no class folder|empty"),
        (flat, "class folder"),
        (empty_class, "elk"),
        (one_class, "one class|1 class"),
        (unseen_class, "elk"),
        (no_images, "readable|unreadable"),
    ],
)
def test_folders_that_cannot_be_used(image_folder, flags, tmp_path, damage, found):
    root = image_folder({split: {"cat": 3, "dog": 3} for split in ("train", "val", "test")})
    damage(root)
    assert re.search(found, refusal("extract", root, *flags))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_there(flags, tmp_path):
    assert "gone" in refusal("extract", tmp_path / "gone", *flags)
    assert not (tmp_path / "out").exists()


def test_strict_stops_at_an_unreadable_image(image_folder, flags, tmp_path):
    root = image_folder({"cat": 12, "dog": 12})
    (root / "cat" / "broken.jpg").write_text("text")
    assert "cat/broken.jpg" in refusal("extract", root, *flags, "--strict")
    assert not (tmp_path / "out").exists()


def test_other_features_are_not_taken_for_these(image_folder, flags, tmp_path):
    root = image_folder({"cat": 12, "dog": 12})
    assert runner.invoke(app, ["extract", str(root), *map(str, flags)]).exit_code == 0
    (root / "cat" / "000.png").unlink()
    assert "--overwrite" in refusal("extract", root, *flags)


def test_a_run_without_its_head(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run.path, tmp_path / "run")
    (run / "head.safetensors").unlink()
    assert "head.safetensors: not found" in refusal("export", run, "--out", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_truncated_file(tiny_bundle, tmp_path):
    bundle = shutil.copytree(tiny_bundle.path, tmp_path / "bundle")
    model = bundle / "model.onnx"
    model.write_bytes(model.read_bytes()[:-1000])
    assert "model.onnx" in refusal("predict", bundle, "photo.jpg")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_that_is_not_there(tiny_bundle, tiny_run, tmp_path):
    data = tiny_run.record.features.source.source
    assert "--provider cuda" in refusal("evaluate", tiny_bundle.path, "--data", data, "--provider", "cuda")
    assert "--device: cuda found" in refusal(
        "train", tiny_run.record.features.path, "--out", tmp_path / "r", "--device", "cuda"
    )


def test_a_photograph_that_is_none(tiny_bundle, tmp_path):
    (tmp_path / "photo.jpg").write_text("text")
    result = runner.invoke(app, ["predict", *map(str, (tiny_bundle.path, tmp_path / "photo.jpg", "gone.jpg"))])
    assert result.exit_code == 1
    assert re.search(r"photo.jpg\n  not a readable image \(.*\)\ngone.jpg\n  no such file\n$", result.stdout)


def test_a_held_out_class_that_the_bundle_does_not_know(tiny_bundle, image_folder):
    data = image_folder({"cat": 2, "gnat": 2})
    assert "gnat" in refusal("evaluate", tiny_bundle.path, "--data", data)


def test_an_unknown_loss_answers_with_near_names(tiny_run, tmp_path):
    features = tiny_run.record.features.path
    assert "did you mean neuralsort" in refusal("train", features, "--loss", "neuralsrt", "--out", tmp_path / "r")


@pytest.fixture
def embeddings(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((4000, 8), np.float32), y=np.arange(4000) % 2)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_a_limit_on_the_size_of_a_file(embeddings, tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        said = refusal("import", embeddings, "--out", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert said.startswith(
        f"headsmith: {tmp_path / 'out'}: File too large; the limit on the size of a file was reached"
    )
    assert "ulimit -f" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_a_full_disk_is_named(embeddings, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("headsmith.trainer.features.feature_writer.FileFeatureWriter.append", full)
    said = refusal("import", embeddings, "--out", tmp_path / "out")
    assert said.startswith(
        f"headsmith: {tmp_path / 'out'}: No space left on device; make room and run the same command"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("extract", "headsmith.trainer.features.extraction.shard_work.gather"),
        ("train", "headsmith.trainer.fitting.fit.label_ranks_of"),
        ("export", "headsmith.export.exporting.prove"),
        ("evaluate", "headsmith.evaluate.measuring.one_classifier.measure"),
    ],
)
def test_an_interrupt_in_mid_work_leaves_nothing(command, step, flags, tiny_run, tiny_bundle, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    record = tiny_run.record.features
    arguments = {
        "extract": [record.source.source, *flags],
        "train": [record.path, "--out", tmp_path / "out"],
        "export": [tiny_run.path, "--out", tmp_path / "out"],
        "evaluate": [tiny_bundle.path, "--data", record.source.source, "--out", tmp_path / "out"],
    }[command]
    monkeypatch.setattr(step, interrupt)
    result = runner.invoke(app, [command, *map(str, arguments)])
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] in ([], ["out.partial"])


def test_sigterm_in_mid_work_leaves_nothing(tiny_run, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("headsmith.export.exporting.prove", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    result = runner.invoke(app, ["export", str(tiny_run.path), "--out", str(tmp_path / "out"), "--head-only"])
    assert result.exit_code == 143
    assert "interrupted" in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_real_ctrl_c(tiny_run, tmp_path):
    endless = ["--epochs", "1000000", "--patience", "1000000", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "headsmith", "train", tiny_run.record.features.path, *endless]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob("out.partial/metrics.jsonl")):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130, message
    assert message.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] in ([], ["out.partial"])  # to go on from, once there is an epoch

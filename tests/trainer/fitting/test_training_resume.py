"""A fit that was killed goes on, and ends bit for bit like one that was not."""

import os
import pickle
import signal
import time
from dataclasses import replace

import pytest
import torch
from forked import end, run_command, start

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_file
from headsmith.trainer import Run, train
from headsmith.trainer.fitting import METRICS, checkpoint, fit_heads
from headsmith.trainer.fitting.checkpoint import CHECKPOINT, CheckpointFolder
from headsmith.trainer.fitting.fit import Fit

CLASSES = 6
KINDS = [
    {},
    {"optimizer": "sgd", "schedule": "cosine", "warmup": 1.0},
    {"averaging": 0.9, "dropout": 0.2, "noise": 0.1, "balanced": True},
    {"head": "mlp", "hidden": 4, "loss": "neuralsort", "p_k": (0.5, 0.5)},
    {"head": "norm_linear", "optimizer": "adamw", "weight_decay": 0.1},
    {"optimizer": "lbfgs", "learning_rate": 1.0, "epochs": 4},
]


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_an_interrupted_fit_ends_like_an_unbroken_one(rows, config, changes, tmp_path, monkeypatch):
    config = replace(config, **({"epochs": 6, "patience": 6} | changes))
    [unbroken] = fit_heads(rows, CLASSES, [config])
    score, calls = Fit._score, []

    def interrupt(*args):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return score(*args)

    monkeypatch.setattr(Fit, "_score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit_heads(rows, CLASSES, [config], keep=CheckpointFolder(tmp_path))
    monkeypatch.undo()
    assert (tmp_path / CHECKPOINT).is_file()
    [resumed] = fit_heads(rows, CLASSES, [config], keep=CheckpointFolder(tmp_path))
    for a, b in zip(resumed.head.parameters(), unbroken.head.parameters(), strict=True):
        assert torch.equal(a, b)
    assert _timeless(resumed.history) == _timeless(unbroken.history)
    assert len((tmp_path / METRICS).read_text().splitlines()) == len(unbroken.history)


def _timeless(history):
    return [replace(epoch, seconds=0.0) for epoch in history]


def test_a_bank_resumes_too(rows, config, tmp_path, monkeypatch):
    configs = [replace(config, loss=loss, p_k=None, m=6) for loss in ("softmax", "softsort", "softmax")]
    unbroken = fit_heads(rows, CLASSES, configs)
    monkeypatch.setattr(
        "headsmith.trainer.fitting.fit.Fit.fitted", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        fit_heads(rows, CLASSES, configs, keep=CheckpointFolder(tmp_path))
    monkeypatch.undo()
    for a, b in zip(fit_heads(rows, CLASSES, configs, keep=CheckpointFolder(tmp_path)), unbroken, strict=True):
        assert torch.equal(a.head.weight, b.head.weight)


def test_a_run_killed_with_sigkill_resumes_bit_for_bit(tiny_run, tmp_path):
    features = tiny_run.record.features.path
    settings = ["--epochs", "150", "--patience", "150", "--batch-size", "4", "--dropout", "0.1", "--device", "cpu"]

    def begin(out):
        command = ["train", features, *settings, "--out", str(tmp_path / out)]
        return start(run_command, *command, printed=tmp_path / "printed.txt")

    process = begin("run")
    partial = tmp_path / "run.partial"
    deadline = time.monotonic() + 100
    while process.is_alive() and time.monotonic() < deadline:
        metrics = partial / METRICS
        if (partial / CHECKPOINT).is_file() and metrics.is_file() and len(metrics.read_text().splitlines()) > 3:
            break
        time.sleep(0.01)
    process.kill()
    assert end(process) == -signal.SIGKILL
    assert (partial / CHECKPOINT).is_file()
    assert not (tmp_path / "run").exists()
    for out in ("run", "unbroken"):
        assert end(begin(out)) == 0, (tmp_path / "printed.txt").read_text()
    assert sha256_file(tmp_path / "run" / "head.safetensors") == sha256_file(tmp_path / "unbroken" / "head.safetensors")
    assert not partial.exists()
    assert Run.load(tmp_path / "run").record.results.val == Run.load(tmp_path / "unbroken").record.results.val


@pytest.fixture
def unfinished(tiny_run, tmp_path, monkeypatch):
    """A run folder's unfinished part, after some epochs."""
    monkeypatch.setattr(Fit, "fitted", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    settings = {"epochs": 3, "device": "cpu", "learning_rate": 0.01}
    with pytest.raises(KeyboardInterrupt):
        train(tiny_run.record.features.path, out=tmp_path / "run", **settings)
    monkeypatch.undo()
    assert (tmp_path / "run.partial" / CHECKPOINT).is_file()
    return tiny_run.record.features.path, tmp_path / "run", settings


def test_other_settings_do_not_go_on_from_it(unfinished):
    features, out, settings = unfinished
    other = settings | {"learning_rate": 0.02}
    message = r"run\.partial: an unfinished run with other settings \(learning_rate 0\.01, now 0\.02\).*overwrite"
    with pytest.raises(InputError, match=message):
        train(features, out=out, **other)
    assert train(features, out=out, overwrite=True, **other).config.learning_rate == 0.02
    assert not out.with_name("run.partial").exists()


def test_overwriting_goes_on_with_what_is_the_same(unfinished, monkeypatch):
    features, out, settings = unfinished
    done_before, run = [], Fit.run

    def watched(fit, checkpoint, metrics):
        done_before.append(checkpoint.load()["done"])
        run(fit, checkpoint, metrics)

    monkeypatch.setattr(Fit, "run", watched)
    train(features, out=out, overwrite=True, **settings)
    assert done_before[0] > 0


def test_a_damaged_checkpoint_says_so(unfinished):
    features, out, settings = unfinished
    path = out.with_name("run.partial") / CHECKPOINT
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged .*overwrite"):
        train(features, out=out, **settings)


@pytest.mark.parametrize("part", ["epochs", "best_state"])
def test_a_checkpoint_of_nan_is_refused(unfinished, part):
    features, out, settings = unfinished
    path = out.with_name("run.partial") / CHECKPOINT
    found = torch.load(path, weights_only=True)

    def spoil(values):
        for value in values.values() if isinstance(values, dict) else values:
            if isinstance(value, dict | list):
                spoil(value)
            elif isinstance(value, torch.Tensor) and value.is_floating_point():
                value.fill_(float("nan"))

    spoil(found["state"][part])
    torch.save(found, path)
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged \(NaN or infinite weights\).*overwrite"):
        train(features, out=out, **settings)


def test_a_checkpoint_that_would_run_code_is_refused(unfinished, tmp_path):
    features, out, settings = unfinished

    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "marker"),))

    torch.save({"identity": {}, "state": Bomb()}, out.with_name("run.partial") / CHECKPOINT, pickle_module=pickle)
    with pytest.raises(InputError, match=r"checkpoint\.pt: holds pickled objects"):
        train(features, out=out, **settings)
    assert not (tmp_path / "marker").exists()


def test_two_trainings_do_not_write_to_one_folder(tiny_run, tmp_path, monkeypatch):
    features = tiny_run.record.features.path

    def second(*args):
        with pytest.raises(InputError, match="run: another training is writing it"):
            train(features, out=tmp_path / "run", epochs=1, device="cpu")
        raise KeyboardInterrupt

    monkeypatch.setattr(Fit, "run", second)
    with pytest.raises(KeyboardInterrupt):
        train(features, out=tmp_path / "run", epochs=1, device="cpu")


def test_a_full_disk_at_a_checkpoint_keeps_the_last_one(rows, config, tmp_path, monkeypatch):
    save, calls = torch.save, []

    def full(*args, **keywords):
        calls.append(None)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        save(*args, **keywords)

    monkeypatch.setattr(torch, "save", full)
    monkeypatch.setattr(checkpoint, "_SHARE", 0)  # save after every epoch, however long it takes
    with pytest.raises(OSError, match="No space left"):
        fit_heads(rows, CLASSES, [replace(config, epochs=50, patience=50)], keep=CheckpointFolder(tmp_path))
    monkeypatch.undo()
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["state"]["done"] >= 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, METRICS]

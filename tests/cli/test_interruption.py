"""What a command says and leaves when it is interrupted, and that the same command goes on from there."""

import os
import signal

import pytest
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.trainer import FeatureSet, train, unfinished_run
from headsmith.trainer.features.extraction import shard_work
from headsmith.trainer.sweep import Sweep, sweep, sweeping

runner = CliRunner()
GRID = {"device": "cpu", "epochs": 2, "loss": "softmax", "learning_rate": [0.01, 0.1]}


def invoke(*arguments):
    return runner.invoke(app, list(map(str, arguments)))


@pytest.fixture
def extraction(tiny_run, tiny_backbone, tmp_path):
    """A command, and the features that it is to give."""
    source = tiny_run.record.features.source.source
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in tiny_backbone._asdict().items()]
    command = ["extract", source, *flags, "--batch-size=8", "--device=cpu", "--workers=2", "--out", tmp_path / "set"]
    return command, FeatureSet.load(tiny_run.record.features.path)


def interrupt_at(monkeypatch, call, number=signal.SIGINT):
    """Send this process a signal at one of the batches."""
    gather, calls = shard_work.gather, []

    def counted(*arguments):
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), number)
        return gather(*arguments)

    monkeypatch.setattr(shard_work, "gather", counted)
    return calls


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_extract_keeps_batches_that_are_less_than_a_part(extraction, tmp_path, number, status):
    command, expected = extraction
    with pytest.MonkeyPatch.context() as patch:
        interrupt_at(patch, 5, number)
        first = invoke(*command)
    assert first.exit_code == status
    kept = f"{tmp_path / 'set.partial'} keeps 32 of 120 images; the same command goes on from there"
    assert first.stderr.splitlines()[-1] == f"headsmith: interrupted: {kept}"
    assert [path.name for path in tmp_path.iterdir()] == ["set.partial"]
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt_at(patch, -1)
        assert invoke(*command).exit_code == 0
    assert len(calls) == 8 + 2 + 2  # 64 of the 96 training images, 12 and 12, in batches of 8
    found = FeatureSet.load(tmp_path / "set")
    for split in expected.splits:
        assert found.ids(split) == expected.ids(split)
        assert found.arrays(split)[0].allclose(expected.arrays(split)[0], atol=1e-2, rtol=1e-2)
    assert found.manifest.pictures_sha256 == expected.manifest.pictures_sha256
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_extract_that_got_nowhere_leaves_nothing(extraction, tmp_path, monkeypatch):
    command, _ = extraction
    interrupt_at(monkeypatch, 1)
    found = invoke(*command)
    assert found.exit_code == 130
    assert found.stderr.endswith("interrupted: nothing is kept, and nothing half written was left\n")
    assert list(tmp_path.iterdir()) == []


def test_nohup_keeps_its_word(monkeypatch, tiny_run, tmp_path):
    """A command that was started to outlive its terminal does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr("headsmith.export.exporting.prove", lambda *_: os.kill(os.getpid(), signal.SIGHUP) or 1 / 0)
        found = invoke("export", tiny_run.path, "--out", tmp_path / "out", "--head-only")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "ZeroDivisionError: division by zero" in found.stderr


def cut(patch, module, name):
    """Interrupt the removal of the unfinished work, after the result was put in place."""
    remove = module.shutil.rmtree

    def stop(path, *arguments, **keywords):
        if str(path).endswith(name):
            raise KeyboardInterrupt
        remove(path, *arguments, **keywords)

    patch.setattr(module.shutil, "rmtree", stop)


def test_a_sweep_that_was_cut_after_it_was_published_is_there(tiny_run, tmp_path):
    features = tiny_run.record.features.path
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut(patch, sweeping, "sweep.partial")
        sweep(features, out=tmp_path / "sweep", config=GRID)
    assert {path.name for path in tmp_path.iterdir()} == {"sweep", "sweep.partial"}
    made = (tmp_path / "sweep" / "sweep.json").read_bytes()
    with pytest.raises(ValueError, match="sweep: exists already"):
        sweep(features, out=tmp_path / "sweep", config=GRID | {"epochs": 3})
    found = sweep(features, out=tmp_path / "sweep", config=GRID)
    assert isinstance(found, Sweep)
    assert (tmp_path / "sweep" / "sweep.json").read_bytes() == made
    assert [path.name for path in tmp_path.iterdir()] == ["sweep"]
    with pytest.raises(ValueError, match="sweep: exists already"):
        sweep(features, out=tmp_path / "sweep", config=GRID)


def test_a_training_that_was_cut_after_it_was_published_is_there(tiny_run, tmp_path):
    features, options = tiny_run.record.features.path, {"epochs": 2, "device": "cpu"}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut(patch, unfinished_run, "run.partial")
        train(features, out=tmp_path / "run", **options)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "run.partial"}
    with pytest.raises(ValueError, match="run: exists already"):
        train(features, out=tmp_path / "run", **(options | {"seed": 1}))
    made = (tmp_path / "run" / "run.json").read_bytes()
    train(features, out=tmp_path / "run", **options)
    assert (tmp_path / "run" / "run.json").read_bytes() == made
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_training_says_what_it_keeps(tiny_run, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("headsmith.trainer.fitting.fit.Fit.fitted", interrupt)
    found = invoke("train", tiny_run.record.features.path, "--out", tmp_path / "run", "--epochs", "3")
    assert found.exit_code == 130
    assert f"interrupted: {tmp_path / 'run.partial'} keeps the epochs up to its last checkpoint" in found.stderr

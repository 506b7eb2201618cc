"""What ends a benchmark, or a part of it, keeps what is done."""

import errno
import io
import os
import signal
import time

import pytest
import torch
from typer.testing import CliRunner

from headsmith import InputError
from headsmith.cli import app
from headsmith.evaluate.benchmark import benchmark, stages, worker_process
from headsmith.evaluate.benchmark.stages import Stages
from headsmith.evaluate.benchmark.trained_rows import read_rows
from headsmith.models.onnx_session import OrtErrors
from tests import forked


@pytest.fixture
def two(zoo):
    return zoo.config(
        "pair", backbones=[zoo.onnx("first"), zoo.onnx("further", seed=1)], sweep="grid.yaml", device="cpu"
    )


def hold(images, config, out, marker):
    """A benchmark that never ends its first export."""

    def export(self, *args):
        marker.touch()
        time.sleep(forked.PATIENCE)

    Stages.export = export
    benchmark(images, config=config, out=out, jobs=1)


def test_a_second_process_shares_the_work_and_takes_over_from_one_that_is_killed(zoo, two, tmp_path, monkeypatch):
    out, marker = tmp_path / "out", tmp_path / "marker"
    process = forked.start(hold, zoo.images, two, out, marker, printed=tmp_path / "printed")
    while not marker.exists():
        assert process.is_alive(), (tmp_path / "printed").read_text(encoding="utf-8")
        time.sleep(0.02)
    swept = out / "sweeps" / "first-grid" / "sweep.json"
    written, done, original = swept.stat().st_mtime_ns, [], Stages.export

    def export(self, *args):
        if not done:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        done.append(self.unit.base)
        return original(self, *args)

    monkeypatch.setattr(Stages, "export", export)
    found = benchmark(zoo.images, config=two, out=out)
    assert done == ["further", "first"]
    assert swept.stat().st_mtime_ns == written
    assert {row.name for row in found.rows if row.kind == "head" and row.top1} == {"first-grid", "further-grid"}
    assert not found.failed


def test_a_further_process_makes_rows_and_ends_with_the_first(zoo, two, tmp_path, monkeypatch):
    told = []

    class Started:
        def __init__(self, command, *, stdin, process_group):
            assert process_group == 0  # Ctrl-C is for the first process
            self.stdin = io.BytesIO()
            self.stdin.close = lambda: told.append(self.stdin.getvalue().decode())

        def wait(self, seconds):
            return 0

    def rows(self, keys):
        for precision, key in keys.items():
            yield stages.pruned(self.unit, precision, key, "not needed", None)

    monkeypatch.setattr(worker_process.subprocess, "Popen", Started)
    monkeypatch.setattr(Stages, "rows", rows)
    monkeypatch.setattr(worker_process.Work, "do", lambda self, told: None)
    with pytest.raises(InputError):  # there is nothing to measure
        benchmark(zoo.images, config=two, out=tmp_path / "out", jobs=2)
    (sent,) = told
    monkeypatch.undo()
    monkeypatch.setattr(Stages, "rows", rows)
    for first, names in ((-1, ["first-grid"]), (os.getppid(), ["first-grid", "further-grid"])):
        monkeypatch.setattr(
            worker_process.sys, "stdin", io.StringIO(sent.replace(f'"first": {os.getpid()}', f'"first": {first}'))
        )
        if first == -1:
            with pytest.raises(SystemExit, match="was ended; first-grid is kept"):
                worker_process.main()
        else:
            worker_process.main()
        assert [row.name for row in read_rows(tmp_path / "out")] == names


def test_a_full_disk_ends_the_command_with_one_line(zoo, two, tmp_path, monkeypatch):
    original = Stages.sweep

    def sweep(self, features):
        if self.unit.base == "further":
            raise OSError(errno.ENOSPC, "No space left on device", str(self.out / "sweeps"))
        return original(self, features)

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "sweep", sweep)
        shown = CliRunner().invoke(
            app, ["benchmark", str(zoo.images), "--config", str(two), "--out", str(tmp_path / "out")]
        )
    assert shown.exit_code == 2
    (line,) = (line for line in shown.output.splitlines() if line.startswith("headsmith: "))
    assert "No space left on device" in line and "make room and run the same command again" in line
    assert f"{tmp_path / 'out'} keeps 1 exported classifier and what was begun" in line
    assert [row.name for row in read_rows(tmp_path / "out")] == ["first-grid"]
    kept = (tmp_path / "out" / "rows" / "first-grid.json").stat().st_mtime_ns
    again = benchmark(zoo.images, config=two, out=tmp_path / "out")
    assert (tmp_path / "out" / "rows" / "first-grid.json").stat().st_mtime_ns == kept
    assert {row.name for row in again.rows if row.kind == "head" and row.top1} == {"first-grid", "further-grid"}


def test_the_batch_is_halved_while_memory_lacks_and_the_row_says_so(zoo, two, tmp_path, monkeypatch):
    extract, export, tried = stages.extract, stages.exported, []

    def short(images, *, batch_size, out, **settings):
        tried.append(batch_size)
        if batch_size > 16 or out.name == "further":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return extract(images, batch_size=batch_size, out=out, **settings)

    def shorter(run, path, precision, max_drop, batch_size, images):
        tried.append(batch_size)
        if batch_size > 8:
            cause = OrtErrors[0]("Failed to allocate memory for requested buffer of size 20")
            raise InputError("model.onnx: does not run") from cause
        return export(run, path, precision, max_drop, batch_size, images)

    monkeypatch.setattr(stages, "extract", short)
    monkeypatch.setattr(stages, "exported", shorter)
    found = benchmark(zoo.images, config=two, out=tmp_path / "out")
    assert tried == [64, 32, 16, 16, 8, 64, 32, 16, 8, 4, 2, 1]
    assert found["first-grid"].notes[0] == "memory did for 8 images a batch"
    assert found["further-grid"].reason.startswith("extract: onnx:")
    assert found["further-grid"].reason.endswith("CUDA out of memory. Tried to allocate 20.00 MiB")

"""Several processes end with the head of one."""

from dataclasses import asdict

import pytest
import torch
from forked import run_command
from ranks import run_ranks, torchrun

from headsmith.trainer import Run, train

SETTINGS = {"epochs": 3, "batch_size": 7, "learning_rate": 0.05, "device": "cpu"}
TWO_CARDS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")


def command(features, out, settings):
    """What each process runs."""
    return [
        "train",
        str(features),
        "--out",
        str(out),
        *(f"--{key.replace('_', '-')}={settings[key]}" for key in settings),
    ]


def printed_by(runner, processes, command, folder):
    done = runner(processes, run_command, *command, folder=folder)
    assert {status for status, _ in done} == {0}, done
    return "".join(printed for _, printed in done)


@pytest.mark.parametrize(
    ("processes", "loss", "device"),
    [(2, "softmax", "cpu"), (3, "softsort", "cpu"), pytest.param(2, "softmax", "cuda", marks=TWO_CARDS)],
)
def test_any_number_of_processes_gives_the_head_of_one(tiny_run, tmp_path, processes, loss, device):
    features, settings = tiny_run.record.features.path, SETTINGS | {"loss": loss, "device": device}
    one = train(features, out=tmp_path / "one", **settings)
    told = command(features, tmp_path / "many", settings)
    printed = printed_by(torchrun if processes == 2 else run_ranks, processes, told, tmp_path)
    assert printed.count("best epoch") == 1
    many = Run.load(tmp_path / "many")
    torch.testing.assert_close(many.head.weight, one.head.weight, atol=1e-4, rtol=1e-3)
    for name in ("val", "test"):
        expected, found = (asdict(getattr(run.record.results, name)) for run in (one, many))
        assert found == pytest.approx(expected, rel=1e-3)
    assert (one.record.processes, many.record.processes) == (1, processes)
    assert not list(tmp_path.glob("*.partial"))


def test_a_mistake_is_one_line(tiny_run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    told = command(tiny_run.record.features.path, tmp_path / "out", SETTINGS)
    done = run_ranks(2, run_command, *told, folder=tmp_path)
    printed = "".join(lines for _, lines in done)
    assert [line for line in printed.splitlines() if line.startswith("headsmith:")] == [
        f"headsmith: {tmp_path / 'out'}: exists already; choose another --out or pass --overwrite to replace it"
    ]
    assert all(status for status, _ in done)
    assert "Traceback" not in printed


def train_twice(features, folder):
    for name in ("first", "second"):
        train(features, out=f"{folder}/{name}", loss="softsort", **SETTINGS)


def test_a_program_may_train_twice(tiny_run, tmp_path):
    done = run_ranks(2, train_twice, tiny_run.record.features.path, str(tmp_path), folder=tmp_path)
    assert [status for status, _ in done] == [0, 0], done
    heads = [Run.load(tmp_path / name).head for name in ("first", "second")]
    assert torch.equal(heads[0].weight, heads[1].weight)

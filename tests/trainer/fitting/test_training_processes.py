"""Several processes end with the head of one."""

import os
import subprocess
import sys

import pytest
import torch

from headsmith.trainer import Run

SETTINGS = ["--epochs", "3", "--batch-size", "7", "--learning-rate", "0.05", "--device", "cpu"]


def trained(launcher, features, out, *settings):
    command = [*launcher, "-m", "headsmith", "train", features, "--out", str(out), *SETTINGS, *settings]
    done = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run.load(out), done.stdout


@pytest.mark.parametrize(("processes", "settings"), [(2, ()), (3, ("--loss", "softsort", "--p-k", ".5,.5"))])
def test_any_number_of_processes_gives_the_head_of_one(tiny_run, tmp_path, processes, settings):
    features = tiny_run.record["features"]["path"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    one, _ = trained([sys.executable], features, tmp_path / "one", *settings)
    many, output = trained(launcher, features, tmp_path / "many", *settings)
    assert output.count("best epoch") == 1
    torch.testing.assert_close(many.head.weight, one.head.weight, atol=1e-4, rtol=1e-3)
    for name in ("val", "test"):
        expected, found = one.record["results"][name], many.record["results"][name]
        assert found == pytest.approx(expected, rel=1e-3)
    assert not list(tmp_path.glob("*.partial"))


def test_a_mistake_is_one_line(tiny_run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "headsmith", "train", tiny_run.record["features"]["path"], "--out", tmp_path / "out"]
    done = subprocess.run(
        [*map(str, command), *SETTINGS],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("headsmith:")] == [
        f"headsmith: {tmp_path / 'out'}: exists already; choose another --out or pass --overwrite to replace it"
    ]
    assert "headsmith/commands.py" not in done.stderr  # no traceback of ours

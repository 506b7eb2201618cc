"""Several processes end with the head of one."""

import os
import subprocess
import sys

import pytest
import torch

from headsmith.trainer import Run, train

SETTINGS = {"epochs": 3, "batch_size": 7, "learning_rate": 0.05, "device": "cpu"}
TWO_CARDS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")


def command(processes, features, out, settings):
    """What torchrun runs."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    return [*launcher, "-m", "headsmith", "train", str(features), "--out", str(out), *flags]


def torchrun(command):
    return subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("processes", "loss", "device"),
    [(2, "softmax", "cpu"), (3, "softsort", "cpu"), pytest.param(2, "softmax", "cuda", marks=TWO_CARDS)],
)
def test_any_number_of_processes_gives_the_head_of_one(tiny_run, tmp_path, processes, loss, device):
    features, settings = tiny_run.record["features"]["path"], SETTINGS | {"loss": loss, "device": device}
    one = train(features, out=tmp_path / "one", **settings)
    done = torchrun(command(processes, features, tmp_path / "many", settings))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("best epoch") == 1
    many = Run.load(tmp_path / "many")
    torch.testing.assert_close(many.head.weight, one.head.weight, atol=1e-4, rtol=1e-3)
    for name in ("val", "test"):
        expected, found = one.record["results"][name], many.record["results"][name]
        assert found == pytest.approx(expected, rel=1e-3)
    assert not list(tmp_path.glob("*.partial"))


def test_a_mistake_is_one_line(tiny_run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    done = torchrun(command(2, tiny_run.record["features"]["path"], tmp_path / "out", SETTINGS))
    assert [line for line in done.stderr.splitlines() if line.startswith("headsmith:")] == [
        f"headsmith: {tmp_path / 'out'}: exists already; choose another --out or pass --overwrite to replace it"
    ]
    assert "headsmith/commands.py" not in done.stderr  # no traceback of ours


TWICE = """
import sys
from headsmith.trainer import train
for name in ("first", "second"):
    train(sys.argv[1], out=f"{sys.argv[2]}/{name}", loss="softsort", **SETTINGS)
"""


def test_a_program_may_train_twice(tiny_run, tmp_path):
    program = tmp_path / "twice.py"
    program.write_text(TWICE.replace("SETTINGS", repr(SETTINGS)))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = torchrun([*launcher, str(program), tiny_run.record["features"]["path"], str(tmp_path)])
    assert done.returncode == 0, done.stdout + done.stderr
    heads = [Run.load(tmp_path / name).head for name in ("first", "second")]
    assert torch.equal(heads[0].weight, heads[1].weight)

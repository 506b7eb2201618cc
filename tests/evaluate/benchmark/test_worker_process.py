"""How many processes share a benchmark, and what of the machine each takes."""

import pytest
import torch

from headsmith.core.cpus import default_threads
from headsmith.evaluate.benchmark import worker_process
from headsmith.evaluate.benchmark.options import BenchmarkOptions
from headsmith.evaluate.benchmark.plan import Entry, Unit
from headsmith.evaluate.benchmark.work_sharing import Work


@pytest.mark.parametrize(
    ("cpus", "backbones", "gigabytes", "asked", "expected"),
    [
        (1, 9, 99, None, 1),
        (2, 9, 99, None, 2),
        (2, 1, 99, None, 1),
        (7, 9, 99, None, 2),
        (16, 9, 99, None, 4),
        (16, 3, 99, None, 3),
        (16, 9, 7, None, 2),
        (16, 9, 1, None, 1),
        (16, 1, 1, 3, 3),
    ],
)
def test_as_many_processes_share_the_work_as_the_machine_bears(
    monkeypatch, tmp_path, cpus, backbones, gigabytes, asked, expected
):
    monkeypatch.setattr(worker_process, "default_threads", lambda: cpus)
    monkeypatch.setattr(worker_process, "free_memory", lambda: gigabytes * 10**9)
    units = [Unit(Entry(backbone=name), name, sweep, ("fp32",)) for name in "abcdefghi"[:backbones] for sweep in "xy"]
    keys = {unit.named("fp32"): "key" for unit in units}
    work = Work(tmp_path, None, units, BenchmarkOptions(jobs=asked), 0.0, keys)
    assert worker_process.with_processes(work).options.jobs == expected


def test_processes_that_share_the_work_share_the_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with worker_process._threads(2):
            assert torch.get_num_threads() == default_threads() == 2
        assert torch.get_num_threads() == default_threads() == 4
    finally:
        torch.set_num_threads(before)

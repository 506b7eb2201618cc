import os

import joblib
import pytest

from headsmith.core import cpus
from headsmith.core.cpus import default_threads, usable_cpus


def test_here_it_is_what_joblib_counts():
    assert usable_cpus() == joblib.cpu_count()


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "9000000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu.max": "nonsense\n"}, 8),
        ({}, 8),
    ],
)
def test_a_container_may_allow_fewer(files, count, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cpus, "_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert usable_cpus() == count


def test_omp_num_threads_wins(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert default_threads() == 3
    for nonsense in ("many", "0", "-1", ""):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert default_threads() == usable_cpus()

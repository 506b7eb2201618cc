import os

import pytest

from headsmith.core.count_limits import MOST_AT_ONCE, check_at_once, check_threads
from headsmith.core.cpus import default_threads
from headsmith.core.errors import InputError


@pytest.mark.parametrize(("cores", "most"), [(2, 64), (64, 64), (256, 256), (None, 64)])
def test_no_more_threads_than_a_machine_has_cores_or_64(cores, most, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    check_threads("--threads", most)
    machine = f"--threads: {most + 1} found, expected at most {most} on this machine of {cores or 1} cores"
    with pytest.raises(InputError, match=machine.removeprefix("--")):
        check_threads("--threads", most + 1)


def test_omp_num_threads_is_bounded_too(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "9999")
    assert default_threads() == 64


@pytest.mark.parametrize("count", [0, -1, MOST_AT_ONCE + 1, 10**23])
def test_batches_that_no_machine_holds(count):
    check_at_once("--batch-size", MOST_AT_ONCE)
    with pytest.raises(InputError, match=rf"^batch_size: {count} found, expected at least 1 and at most 65,536"):
        check_at_once("--batch-size", count)

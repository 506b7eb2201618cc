"""Models take turns, a busy machine is named, and memory is a model's own."""

import os
import subprocess
import sys

import numpy as np
import pytest

from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.measuring.machine_load import Watch, disturbance
from headsmith.evaluate.measuring.memory import Growth
from headsmith.evaluate.measuring.timing_in_turns import ROUNDS, Effort, _in_turns
from headsmith.export import export_classifier


def test_models_take_turns():
    """Of every turn the first run is not timed."""
    said = []
    times = _in_turns([lambda: said.append("a"), lambda: said.append("b")], Effort(100.0, 10, ()))
    assert "".join(said) == "aaabbb" * ROUNDS
    assert [len(one) for one in times] == [10, 10]


def test_a_slow_model_is_timed_three_times():
    said = []
    (times,) = _in_turns([lambda: said.append("a")], Effort(0.0, 10, ()))
    assert (len(times), len(said)) == (3, 6)


@pytest.mark.parametrize(
    ("used", "own", "count", "others"),
    [
        (2.0, 2.0, 2, None),  # alone
        (2.0, 1.0, 2, 1.0),  # half of the machine is another's
        (1.5, 1.0, 8, None),  # another's, and enough is left
        (1.9, 1.8, 2, None),  # what every system does by itself
        (63.0, 2.0, 64, 61.0),
        (0.5, 0.9, 1, None),  # clocks of different grain
        (49.0, 1.0, 2, 1.0),  # ticks that came together: two CPUs are no more than two
    ],
)
def test_others_are_in_the_way_where_hardly_any_cpu_is_free(used, own, count, others):
    assert disturbance(used, own, count) == (None if others is None else pytest.approx(others))


def test_a_few_ticks_are_no_busy_machine(monkeypatch):
    seconds = iter([0.0, 5.0])
    monkeypatch.setattr(Watch, "_used", lambda self: (next(seconds), 2))
    assert Watch().disturbed() is None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_a_busy_machine_is_noticed():
    """This process and another one share a CPU."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        watch, runs = Watch(), 0
        while watch.disturbed() is None and runs < 1e5:
            runs += int(np.arange(1e5).sum() > 0)
    finally:
        other.kill()
        other.wait()
        os.sched_setaffinity(0, allowed)
    assert runs < 1e5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is attributed under glibc only")
def test_growth_is_what_came_and_not_what_was_there():
    before = np.ones(2**23)  # 64 MiB
    growth = Growth()
    assert growth.bytes(0) is None or growth.bytes(0) < 2**23
    more = np.ones(2**25)  # 256 MiB, beside which little is what else the process gives back meanwhile
    assert 0.9 * more.nbytes < growth.bytes(at_least=more.nbytes) < 1.5 * more.nbytes
    assert growth.bytes(at_least=2 * more.nbytes) is None  # it cannot have come into memory
    assert before.nbytes == 2**26  # held until here


def test_a_small_head_does_not_take_what_the_process_holds(tiny_run, tmp_path):
    """The process holds torch, some hundred megabytes."""
    bundle = export_classifier(tiny_run, out=tmp_path / "head", head_only=True)
    results = evaluate_classifiers([bundle.path, bundle.path / "model.onnx"], data=tiny_run.record.features.path)
    for result in results:
        assert result.speed.memory_bytes is None or result.speed.memory_bytes < 3e7
        assert result.speed.latency.p10 <= result.speed.latency.p50 <= result.speed.latency.p90

"""Where memory does not do for a batch, smaller ones are run, and timed."""

import numpy as np
import pytest

from headsmith import InputError
from headsmith.core.memory_shortage import halving, lacks_memory
from headsmith.evaluate import evaluate_classifiers, evaluation
from headsmith.evaluate.measuring import batch_sizes, timing_in_turns
from headsmith.export.formats.onnx_runtime import OnnxModel
from headsmith.models.onnx_session import OrtErrors


@pytest.fixture
def few(monkeypatch):
    """A function: let memory do for so many inputs a run; the numbers that were tried."""
    answer, tried = OnnxModel.answer, []

    def limit(most):
        def limited(self, fed):
            tried.append(len(fed))
            if len(fed) > most:
                cause = OrtErrors[0]("Failed to allocate memory for requested buffer of size 20")
                raise InputError("model.onnx: does not run") from cause
            return answer(self, fed)

        monkeypatch.setattr(OnnxModel, "answer", limited)
        return tried

    return limit


def test_an_evaluation_halves_the_batch_and_times_the_smaller_one(tiny_bundle, tiny_run, tmp_path, few, monkeypatch):
    images = tiny_run.record.features.source.source
    # Of such small images it runs 33 at once, whatever the batch.
    monkeypatch.setattr(batch_sizes, "batches_of", lambda model, inputs: np.arange(len(inputs))[:, None])
    monkeypatch.setattr(evaluation, "THOROUGH", timing_in_turns.Effort(0, 1, timing_in_turns.BATCH_SIZES))
    (whole,) = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path / "whole", batch_size=16)
    tried = few(4)
    (found,) = evaluate_classifiers(tiny_bundle, data=images, out=tmp_path / "few", batch_size=16, speed=True)
    begun = tried.index(4)
    assert max(tried[begun:]) == 4 < max(tried)
    assert found.setup.batch_size == 4
    assert found.notes[-1] == "memory did for 4 images a batch" and found.notes[:-1] == whole.notes
    assert found.summary == whole.summary
    assert sorted(found.speed.throughput) == [1, 2, 4]
    assert found.speed.latency.p50 > 0
    tried.clear()
    evaluate_classifiers(tiny_bundle, data=images, out=tmp_path / "few", batch_size=16, speed=True)
    assert tried == []


def test_what_fails_alone_or_for_another_reason_is_told():
    def attempt(error):
        def run(size):
            tried.append(size)
            raise error

        return run

    for error, sizes in ((MemoryError(), [5, 2, 1]), (ValueError("a wrong shape"), [5])):
        tried = []
        with pytest.raises(type(error)):
            halving(5, attempt(error))
        assert tried == sizes
    assert halving(5, str) == ("5", 5)
    with pytest.raises(MemoryError) as huge:
        np.empty(2**50)
    assert lacks_memory(huge.value)

import threading

import pytest
import torch

from headsmith.trainer.fitting.parallel_compilation import side_by_side

CPU = torch.device("cpu")


def test_results_keep_their_order():
    assert side_by_side([(name, lambda name=name: name) for name in "abacb"], CPU) == list("abacb")


def test_calls_of_equal_names_never_run_at_the_same_time():
    met = threading.Barrier(2, timeout=0.2)
    with pytest.raises(threading.BrokenBarrierError):
        side_by_side([("a", met.wait), ("a", met.wait)], CPU)


def test_calls_of_different_names_run_at_the_same_time():
    met = threading.Barrier(2, timeout=20)
    side_by_side([("a", met.wait), ("b", met.wait)], CPU)  # each waits for the other


@pytest.mark.parametrize("inference", [False, True])
def test_the_mode_of_the_caller_holds_in_the_threads(inference):
    with torch.inference_mode(inference):
        assert side_by_side([("a", torch.is_inference_mode_enabled)] * 2, CPU) == [inference] * 2


def test_an_error_of_a_call_is_raised():
    with pytest.raises(ZeroDivisionError):
        side_by_side([("a", lambda: 1), ("b", lambda: 1 // 0)], CPU)

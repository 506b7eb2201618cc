import threading

import pytest
import torch

from headsmith.trainer.fitting.side_by_side import side_by_side

CPU = torch.device("cpu")


def test_results_keep_their_order_and_equal_names_one_thread():
    calls = [(name, lambda name=name: (name, threading.get_ident())) for name in "abacb"]
    found = side_by_side(calls, CPU)
    assert [name for name, _ in found] == list("abacb")
    by_name = {name: {thread for own, thread in found if own == name} for name in "abc"}
    assert all(len(threads) == 1 for threads in by_name.values())


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

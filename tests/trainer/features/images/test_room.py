"""No more pixels are decoded at once than there is room for."""

import multiprocessing
import threading
import time

import pytest

from headsmith.trainer.features.images.decode_memory import Room


@pytest.mark.parametrize("processes", [False, True])
def test_what_is_decoded_at_once_has_room(processes):
    kind = multiprocessing.get_context("fork") if processes else threading
    room = Room(processes=processes, pixels=100)
    inside = multiprocessing.get_context("fork").Value("q", 0)
    most = multiprocessing.get_context("fork").Value("q", 0)

    def work(pixels):
        for _ in range(3):
            with room.turn() as enter:
                enter(pixels)
                with inside, most:
                    inside.value += pixels
                    most.value = max(most.value, inside.value)
                time.sleep(0.002)
                with inside:
                    inside.value -= pixels

    worker = kind.Process if processes else kind.Thread
    workers = [worker(target=work, args=(pixels,)) for pixels in (60, 50, 40, 30)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert 0 < most.value <= 100
    assert inside.value == 0


def test_what_is_larger_than_all_room_goes_alone():
    room = Room(processes=False, pixels=100)
    with room.turn() as enter:
        enter(10**9)
        blocked = threading.Thread(target=lambda: _enter(room), daemon=True)
        blocked.start()
        blocked.join(0.05)
        assert blocked.is_alive()
    blocked.join(10)
    assert not blocked.is_alive()


def _enter(room):
    with room.turn() as enter:
        enter(1)

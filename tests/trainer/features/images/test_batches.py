import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from forked import end, start
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headsmith.core.cpus import usable_cpus
from headsmith.core.errors import InputError
from headsmith.models import Preprocessing
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import image_batches, open_images
from headsmith.trainer.features.images import batches as batches_module
from headsmith.trainer.features.images import decode_processes, decode_threads

RECIPE = Preprocessing("shortest", (20, 20), (16, 16), "bilinear", (0.5,) * 3, (0.5,) * 3)


@pytest.fixture(scope="module")
def damaged(image_folder):
    folder = image_folder({"cat": 7, "dog": 7})
    (folder / "cat" / "001.png").write_text("not an image")
    photo = folder / "dog" / "002.png"
    photo.write_bytes(photo.read_bytes()[:100])
    return open_images(folder, splits=False)


@pytest.mark.parametrize("workers", [1, 4, 9])  # threads, and processes
def test_batches_follow_the_image_set(damaged, workers, monkeypatch):
    monkeypatch.setattr(batches_module, "_FEW", 0)
    reported = []
    batches = list(image_batches(damaged, RECIPE, 5, workers=workers, on_unreadable=lambda *r: reported.append(r)))
    readable = [s for s in damaged.samples if s.id not in ("cat/001.png", "dog/002.png")]
    assert [name for batch in batches for name in batch.ids] == [s.id for s in readable]
    assert np.concatenate([batch.labels for batch in batches]).tolist() == [s.label for s in readable]
    assert [len(batch.ids) for batch in batches] == [4, 4, 4]
    assert [name for name, _ in reported] == ["cat/001.png", "dog/002.png"]
    assert reported[0][1] == "not a readable image (not an image format that is read)"
    assert "truncated" in reported[1][1] or "broken" in reported[1][1]


def test_pixels_are_resized_and_cropped_rgb(damaged):
    (batch,) = image_batches(damaged.split("test"), RECIPE, 99, on_unreadable=lambda *_: None)
    assert batch.pixels.shape == (12, 16, 16, 3)
    assert batch.pixels.dtype == np.uint8
    image = damaged.read(0).resize((20, 20), Image.Resampling.BILINEAR).crop((2, 2, 18, 18))
    assert np.array_equal(batch.pixels[0], np.asarray(image))


def test_strict_stops_and_says_what_to_do(damaged):
    with pytest.raises(UnreadableImage, match="cat/001.png: not a readable image.*run without `strict`"):
        list(image_batches(damaged, RECIPE, 5, strict=True))


def test_unreadable_images_are_logged_unless_asked_for(damaged, caplog):
    list(image_batches(damaged, RECIPE, 5))
    assert "cat/001.png: left out: not a readable image" in caplog.text


def test_a_batch_without_a_readable_image_is_skipped(image_folder):
    folder = image_folder({"cat": 3})
    for path in (folder / "cat").iterdir():
        path.write_text("")
    assert list(image_batches(open_images(folder, splits=False), RECIPE, 2)) == []


@pytest.mark.parametrize(("batch_size", "workers", "flag"), [(0, 1, "^batch_size: 0"), (1, 0, "^workers: 0")])
def test_sizes_below_one(damaged, batch_size, workers, flag):
    with pytest.raises(InputError, match=f"{flag} found, expected at least 1"):
        next(image_batches(damaged, RECIPE, batch_size, workers=workers))


@settings(deadline=None, max_examples=30)
@given(items=st.lists(st.integers()), workers=st.integers(1, 4), ahead=st.integers(1, 9))
def test_ordered_map_is_map(items, workers, ahead):
    found = decode_threads.ordered_map(lambda item: item * 2, items, workers, ahead=ahead)
    assert list(found) == [item * 2 for item in items]


@settings(deadline=None, max_examples=8)
@given(count=st.integers(0, 60), workers=st.integers(1, 3), ahead=st.integers(1, 50))
def test_ordered_map_in_processes_is_map(count, workers, ahead):
    before = torch.get_rng_state()
    found = decode_processes.ordered_map(lambda item: (item * 2, os.getpid()), iter(range(count)), workers, ahead=ahead)
    doubled, where = zip(*found, strict=True) if count else ((), ())
    assert list(doubled) == [item * 2 for item in range(count)]
    assert os.getpid() not in where
    assert len(set(where)) <= workers
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("way", [decode_threads, decode_processes])
def test_ordered_map_runs_ahead_by_a_bound_and_stops_when_closed(way):
    drawn = count()
    before = threading.active_count()
    results = way.ordered_map(lambda item: item, drawn, 2, ahead=5)
    assert [next(results), next(results)] == [0, 1]
    results.close()
    assert next(drawn) <= 7
    assert not multiprocessing.active_children()
    until = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("way", [decode_threads, decode_processes])
def test_what_work_raises_comes_out_at_its_place(way):
    results = way.ordered_map(lambda item: 1 // item, [1, 0, 1], 2, ahead=3)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def decode_without_end():
    for pid, _ in decode_processes.ordered_map(lambda item: (os.getpid(), bytes(2**20)), iter(int, 1), 2, ahead=99):
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    parent, printed = start(decode_without_end, printed=tmp_path / "pids.txt"), []
    while parent.is_alive() and len(printed) < 61:  # the last may be half a line
        time.sleep(0.01)
        printed = (tmp_path / "pids.txt").read_text().splitlines() if (tmp_path / "pids.txt").exists() else []
    parent.kill()
    assert end(parent) == -signal.SIGKILL
    pids = {int(pid) for pid in printed[:60]}
    assert len(pids) == 2
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, pids
        time.sleep(0.05)


def test_a_killed_process_is_one_line():
    results = decode_processes.ordered_map(lambda item: (os.getpid(), bytes(2**16)), count(), 2, ahead=9)
    pid, _ = next(results)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(InputError, match="workers: a process that decodes images was killed .*with fewer"):
        for _ in results:
            pass


def test_processes_leave_ctrl_c_to_their_parent():
    ignored = decode_processes.ordered_map(
        lambda _: signal.getsignal(signal.SIGINT) is signal.SIG_IGN, range(2), 1, ahead=2
    )
    assert list(ignored) == [True, True]


def test_processes_write_past_a_live_display(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as rich does
    assert list(decode_processes.ordered_map(lambda _: sys.stderr is sys.__stderr__, range(2), 1, ahead=2)) == [
        True,
        True,
    ]


def test_children_that_may_have_none_do_not_fork():
    with multiprocessing.get_context("fork").Pool(1) as pool:  # its processes are daemons
        assert pool.apply(decode_processes.can_fork) is False
    assert decode_processes.can_fork()


def test_workers_follow_the_affinity_mask(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert usable_cpus() == 2

"""Feature sets larger than memory: laid out and mapped, never copied into it."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headsmith.trainer import import_features, inspect_features
from headsmith.trainer.features.columns import read_columns
from headsmith.trainer.features.feature_writer import split_file


@contextmanager
def private_memory() -> Iterator[list[float]]:
    """By how many MB the memory that no file backs grew, at the most."""

    def now() -> float:
        return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024

    grown, done, before = [0.0], threading.Event(), now()

    def watch() -> None:
        while not done.wait(0.005):
            grown[0] = max(grown[0], now() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield grown
    finally:
        done.set()
        watcher.join()


def make(folder, rows, width, dtype="float16"):
    names, labels = pa.array(np.arange(rows)).cast(pa.string()), np.arange(rows) % 2
    return split_file(folder / "train", names, labels, ["a", "b"], width, dtype)


def test_what_is_appended_is_what_is_mapped(tmp_path):
    rows = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    with make(tmp_path, 1000, 3, "float32") as sink:
        for start in range(0, 1000, 77):
            sink.append(rows[start : start + 77])
    found = read_columns(tmp_path / "train")
    assert (found.features == rows).all()
    assert found.ids == [str(row) for row in range(1000)]
    assert found.labels.tolist() == [0, 1] * 500


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="the size of the memory is not known")
def test_a_set_larger_than_the_memory_is_mapped(tmp_path):
    """The file is a hole, so the disk need not be as large; more than 2**31 features are one array all the same."""
    width = 16384
    rows = max(2**31 // width + 1, int(1.2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // (2 * width))
    with make(tmp_path, rows, width) as sink:
        sink.append(np.full((1, width), 7, np.float16))
    found = read_columns(tmp_path / "train")
    assert found.features.shape == (rows, width)
    assert found.features[0].tolist() == [7] * width
    found.features[-1] = 3  # in memory only
    assert not read_columns(tmp_path / "train").features[-1].any()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_importing_and_inspecting_take_little_memory(tmp_path):
    """240 MB of features; what inspecting needs is its sample for the nearest neighbours, whatever the set's size."""
    block = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    for name, times in (("small.npz", 1), ("large.npz", 60)):
        np.savez(tmp_path / name, x=np.tile(block, (times, 1)), y=np.arange(1000 * times) % 3)
    inspect_features(import_features([tmp_path / "small.npz"], out=tmp_path / "small").path)
    with private_memory() as importing:
        import_features([tmp_path / "large.npz"], out=tmp_path / "set")
    with private_memory() as inspecting:
        inspect_features(tmp_path / "set")
    assert importing[0] < 90
    assert inspecting[0] < 210
    assert sum(file.stat().st_size for file in (tmp_path / "set").rglob("*.arrow")) > 240e6

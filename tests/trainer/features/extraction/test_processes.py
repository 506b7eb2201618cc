"""Several processes at one extraction give what one gives, and none waits for one that was killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from forked import PATIENCE, forked

from headsmith.core.distributed import FirstEndedError, Processes
from headsmith.core.errors import InputError
from headsmith.trainer.features import FeatureSet, extract
from headsmith.trainer.features.extraction import shard_buffer, shards, workers
from headsmith.trainer.features.extraction.assembly import elapsed

MANIFEST_KEYS = ("fingerprint", "request", "rows_sha256", "unreadable", "splits", "class_names")


def work(out, options, begun, dead, log, die_at):
    """One process of an extraction, in parts of 4 images; none writes before each of them has taken a part."""
    torch.set_num_threads(1)
    shards.SHARD_ROWS = 4
    write = shard_buffer.write_shard
    written = []

    def note(path, *rest):
        if not written:
            begun.wait()
        if len(written) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if die_at is None:
            dead.wait()
        write(path, *rest)
        written.append(path.name)

    shard_buffer.write_shard = note
    extract(out=out, **options)
    log.put(written)


@pytest.fixture(scope="module")
def context():
    return forked()


@pytest.fixture(scope="module")
def options(image_folder, tiny_backbone):
    folder = image_folder({"cat": 30, "dog": 11, "owl": 10})
    for name in ("cat/004.png", "owl/007.png", "dog/001.png"):
        (folder / name).write_text("no image")
    # Two threads: with many, one process would have taken all parts ahead.
    return {"images": folder, "batch_size": 3, "device": "cpu", "workers": 2, **tiny_backbone._asdict()}


@pytest.fixture(scope="module")
def alone(options, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SHARD_ROWS", 4)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        yield extract(out=tmp_path_factory.mktemp("alone") / "set", **options)
        torch.set_num_threads(threads)


def run(context, out, options, deaths):
    """Work in as many processes as ``deaths`` has entries: before which of its own parts each dies, or never."""
    begun, dead, log = context.Barrier(len(deaths)), context.Event(), context.Queue()
    processes = [context.Process(target=work, args=(out, options, begun, dead, log, die_at)) for die_at in deaths]
    for process in processes:
        process.start()
    for process, die_at in zip(processes, deaths, strict=True):
        if die_at is not None:
            process.join(PATIENCE)
    dead.set()
    for process in processes:
        process.join(PATIENCE)
        process.kill()
        process.join()
    assert [process.exitcode for process in processes] == [0 if n is None else -signal.SIGKILL for n in deaths]
    return [log.get() for die_at in deaths if die_at is None]


def assert_same(found: Path, expected: FeatureSet):
    found = FeatureSet.load(found)
    for key in MANIFEST_KEYS:
        assert getattr(found.manifest, key) == getattr(expected.manifest, key)
    assert len(found.manifest.unreadable) == 3
    for split in expected.splits:
        name = "data-00000-of-00001.arrow"
        assert (found.path / split / name).read_bytes() == (expected.path / split / name).read_bytes()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_processes_gives_the_bytes_of_one(context, options, alone, tmp_path, count):
    written = run(context, tmp_path / "set", options, [None] * count)
    assert_same(tmp_path / "set", alone)
    names = [name for of_one in written for name in of_one]
    assert len(names) == len(set(names)) == 15  # 41 train, 5 val, 5 test in parts of 4
    assert all(written)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_the_others_take_over_what_a_killed_process_had_taken(context, options, alone, tmp_path):
    (written,) = run(context, tmp_path / "set", options, [1, None])
    assert_same(tmp_path / "set", alone)
    assert len(written) == 14
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_after_all_were_killed_the_next_goes_on(context, options, alone, tmp_path):
    run(context, tmp_path / "set", options, [2, 1])
    assert len(list((tmp_path / "set.partial").glob("*.arrow"))) == 3
    (written,) = run(context, tmp_path / "set", options, [None])
    assert_same(tmp_path / "set", alone)
    assert len(written) == 12


def test_two_extractions_of_different_requests_do_not_write_one_output(options, alone, tmp_path):
    out = tmp_path / "set"
    request = alone.manifest.request
    with workers.join(out, replace(request, dtype="float32"), False, lambda: False) as worker:
        for overwrite in (False, True):
            with pytest.raises(InputError, match="another extraction is writing it; wait .* another dtype"):
                extract(out=out, overwrite=overwrite, **options)
        with worker.alone(), pytest.raises(InputError, match="another extraction is writing it"):
            extract(out=out, **options)
    with pytest.raises(InputError, match="unfinished extraction with another dtype"):
        extract(out=out, **options)
    assert_same(extract(out=out, overwrite=True, **options).path, alone)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_an_extraction_of_the_same_request_is_joined_not_thrown_away(options, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", 4)
    out = tmp_path / "set"
    with workers.join(out, alone.manifest.request, False, lambda: False) as worker:
        lease = worker.lease("train-000000.arrow")
        assert worker.lease("train-000000.arrow") is None
        lease.release()
        assert worker.listing() >= {"request.json", ".train-000000.arrow.lock"}
        assert_same(extract(out=out, overwrite=True, **options).path, alone)
        assert worker.listing() is None
        assert worker.lease("train-000000.arrow") is None
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_gate_whose_holder_says_nothing(options, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE", 0)
    with (
        workers.exclusive(tmp_path / "set", alone.manifest.request),
        pytest.raises(InputError, match="another extraction is writing it"),
    ):
        extract(out=tmp_path / "set", **options)
    assert not list(tmp_path.iterdir())


def test_time_is_counted_once_where_several_work_at_once():
    def shard(began, seconds):
        return shards.ShardRecord(1, [], began, seconds, "request")

    assert elapsed([shard(100, 10)]) == 10
    assert elapsed([shard(100, 10), shard(105, 10), shard(101, 2)]) == 15  # two at once, one inside of another
    assert elapsed([shard(500, 3), shard(100, 10)]) == 13  # a pause between


@pytest.fixture
def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def launched(rank, port, work, log):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    launch = Processes.launched("cpu")
    try:
        log.put((rank, [launch.broadcast("pid", lambda: os.getpid()), work(launch, rank)]))
    except (InputError, FirstEndedError, LookupError, KeyboardInterrupt) as error:
        log.put((rank, f"{type(error).__name__}: {error}"))
    time.sleep(0.5)  # the first keeps the store


def first_refuses(launch, rank):
    if rank == 1:
        return launch.first_then_others("work", lambda first: first)

    def refuse(first):
        raise InputError("no images")

    return launch.first_then_others("work", refuse)


def first_fails(launch, rank):
    def fail(first):
        if not first:
            raise AssertionError("the second has nothing to begin with")
        raise LookupError("a fault of ours")

    return launch.first_then_others("work", fail)


def first_is_interrupted(launch, rank):
    def stop(first):
        raise KeyboardInterrupt

    return launch.first_then_others("work", stop)


def first_is_killed(launch, rank):
    return launch.first_then_others("work", lambda first: os.kill(os.getpid(), signal.SIGKILL))


def both_do(launch, rank):
    return launch.first_then_others("work", lambda first: first)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (both_do, (True, False)),
        (first_refuses, ("InputError: no images",) * 2),
        (
            first_fails,
            (
                "LookupError: a fault of ours",
                "FirstEndedError: the first process ended with LookupError: a fault of ours",
            ),
        ),
        (
            first_is_interrupted,
            ("KeyboardInterrupt: ", "FirstEndedError: the first process ended with KeyboardInterrupt"),
        ),
    ],
)
def test_the_first_process_tells_the_others(context, task, expected, free_port):
    log = context.Queue()
    processes = [context.Process(target=launched, args=(rank, free_port, task, log)) for rank in (1, 0)]
    for process in processes:
        process.start()
    said = dict(log.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    if isinstance(expected[0], bool):
        assert said[0][0] == said[1][0] == processes[1].pid
        assert (said[0][1], said[1][1]) == expected
    else:
        assert (said[0], said[1]) == expected


def test_a_first_process_that_was_killed_ends_the_others(context, free_port):
    log = context.Queue()
    processes = [context.Process(target=launched, args=(rank, free_port, first_is_killed, log)) for rank in (1, 0)]
    for process in processes:
        process.start()
    rank, said = log.get(timeout=60)
    assert rank == 1
    assert said.startswith("FirstEndedError: the first process is gone")
    for process in processes:
        process.join()


def test_torchrun(options, tmp_path):
    """Two processes with ``--overwrite``: the first throws away what is there, and both make the new one."""
    old = extract(out=tmp_path / "set", **options)
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items() if key != "images"]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [
        *launch,
        "-m",
        "headsmith",
        "extract",
        options["images"],
        *flags,
        "--out",
        tmp_path / "set",
        "--overwrite",
    ]
    before = (tmp_path / "set").stat().st_ino
    done = subprocess.run(map(str, command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "set").stat().st_ino != before
    assert done.stdout.count("3 classes") == 1
    assert done.stdout.count("owl/007.png: not a readable image") == 1
    new = FeatureSet.load(tmp_path / "set")
    assert new.manifest.rows_sha256 == old.manifest.rows_sha256
    assert [path.name for path in tmp_path.iterdir()] == ["set"]

import errno
import os
import signal
from collections import Counter

import pytest
import torch
from forked import end, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headsmith.core.errors import InputError
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import FeatureSet, extract, open_images
from headsmith.trainer.features.extraction import extraction, shard_buffer, shards


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SHARD_ROWS", 4)
        yield


@pytest.fixture(scope="module")
def folder(image_folder):
    found = image_folder({"cat": 12, "dog": 11, "owl": 10})
    (found / "cat" / "004.png").write_text("no image")
    return found


@pytest.fixture(scope="module")
def unbroken(folder, tiny_backbone, tmp_path_factory):
    return extract(folder, out=tmp_path_factory.mktemp("whole") / "set", batch_size=3, **tiny_backbone._asdict())


def assert_same(found: FeatureSet, expected: FeatureSet):
    for split in ("train", "val", "test"):
        assert found.ids(split) == expected.ids(split)
        assert len(set(found.ids(split))) == len(found.ids(split))
        assert torch.equal(found.arrays(split)[0], expected.arrays(split)[0])
        assert torch.equal(found.arrays(split)[1], expected.arrays(split)[1])
    for key in ("fingerprint", "request", "rows_sha256", "unreadable", "splits", "class_names"):
        assert getattr(found.manifest, key) == getattr(expected.manifest, key)


def stop_after(count, error):
    """A shard writer that raises ``error`` when ``count`` shards are written."""
    written = []

    def write(*args):
        if len(written) == count:
            raise error
        shards.write_shard(*args)
        written.append(args[0].name)

    return write


def run(folder, out, tiny, **options):
    return extract(folder, out=out, **({"batch_size": 3} | tiny._asdict() | options))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_any_number_of_interruptions_leaves_the_same_result(stops, folder, unbroken, tiny_backbone, tmp_path_factory):
    out = tmp_path_factory.mktemp("broken") / "set"
    for count in stops:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(shard_buffer, "write_shard", stop_after(count, KeyboardInterrupt()))
            run(folder, out, tiny_backbone)
            raise KeyboardInterrupt  # this one got through before it was stopped
        assert not (out.exists() and out.with_name("set.partial").exists())  # nor either, where nothing was kept
    assert_same(run(folder, out, tiny_backbone), unbroken)
    assert not out.with_name("set.partial").exists()


def killed_halfway(folder, out, options):
    """An extraction that is killed while it writes its fourth shard."""
    shards.SHARD_ROWS = 4
    table, count = shards.write_table, Counter()

    def die_halfway(path, rows):
        count["calls"] += 1
        if count["calls"] == 4:
            path.with_name(f"{path.name}.tmp").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        table(path, rows)

    shards.write_table = die_halfway
    extract(folder, out=out, batch_size=3, **options)


def test_a_killed_run_goes_on_at_the_first_missing_shard(folder, unbroken, tiny_backbone, tmp_path, monkeypatch):
    out = tmp_path / "set"
    killed = start(killed_halfway, folder, out, tiny_backbone._asdict(), printed=tmp_path / "printed.txt")
    assert end(killed) == -signal.SIGKILL
    assert not out.exists()
    partial = out.with_name("set.partial")
    assert [path.name for path in sorted(partial.glob("*.arrow"))] == [f"train-{n:06d}.arrow" for n in range(3)]
    written = []

    def write(path, *rest):
        written.append(path.name)
        shards.write_shard(path, *rest)

    monkeypatch.setattr(shard_buffer, "write_shard", write)
    assert_same(run(folder, out, tiny_backbone), unbroken)
    assert written[0] == "train-000003.arrow"
    assert len(written) == len(shards.plan(open_images(folder))) - 3
    assert not partial.exists()


def test_a_full_disk_keeps_what_is_finished(folder, unbroken, tiny_backbone, tmp_path, monkeypatch):
    sync, count = os.fsync, Counter()

    def full(handle):
        count["calls"] += 1
        if count["calls"] == 4:  # the request and two shards went well
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError, match=r"set.partial: No space left on device; the finished parts are kept; make room and run"
        ):
            run(folder, tmp_path / "set", tiny_backbone)
    left = sorted(path.name for path in (tmp_path / "set.partial").iterdir())
    assert left == ["request.json", "train-000000.arrow", "train-000001.arrow"]
    assert not (tmp_path / "set").exists()
    assert_same(run(folder, tmp_path / "set", tiny_backbone), unbroken)


def test_a_full_disk_at_the_very_end(folder, unbroken, tiny_backbone, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(extraction, "assemble", full)
        with pytest.raises(InputError, match="No space left on device; the finished parts are kept"):
            run(folder, tmp_path / "set", tiny_backbone)
    assert not (tmp_path / "set").exists()
    assert_same(run(folder, tmp_path / "set", tiny_backbone), unbroken)


def test_other_errors_of_the_system_are_not_called_a_full_disk(folder, tiny_backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_buffer, "write_shard", stop_after(0, OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        run(folder, tmp_path / "set", tiny_backbone)


@pytest.fixture
def begun(folder, tiny_backbone, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shard_buffer, "write_shard", stop_after(2, KeyboardInterrupt()))
        run(folder, tmp_path / "set", tiny_backbone)
    return tmp_path / "set"


def test_an_unfinished_extraction_of_something_else_is_refused(begun, folder, tiny_backbone):
    with pytest.raises(InputError, match=r"unfinished .* another dtype \(float16, now float32\).*`overwrite`"):
        run(folder, begun, tiny_backbone, dtype="float32")
    assert not begun.exists()
    again = run(folder, begun, tiny_backbone, dtype="float32", overwrite=True)
    assert again.manifest.dtype == "float32"
    assert not begun.with_name("set.partial").exists()


def test_strict_also_sees_what_an_earlier_run_left_out(begun, folder, unbroken, tiny_backbone):
    for out in (begun, unbroken.path):
        with pytest.raises(UnreadableImage, match=r"cat/004.png: not a readable image.*\(1 in all\).*without `strict`"):
            run(folder, out, tiny_backbone, strict=True)
    assert not begun.exists()


def test_another_batch_size_goes_on(begun, folder, unbroken, tiny_backbone):
    found = run(folder, begun, tiny_backbone, batch_size=1)
    assert found.manifest.rows_sha256 == unbroken.manifest.rows_sha256
    for split in ("train", "val", "test"):
        torch.testing.assert_close(found.arrays(split)[0], unbroken.arrays(split)[0], atol=1e-3, rtol=1e-3)


def test_a_damaged_shard_is_named(begun, folder, tiny_backbone, unbroken):
    shard = begun.with_name("set.partial") / "train-000001.arrow"
    content = shard.read_bytes()
    for damaged in (content[:100], (shard.parent / "train-000000.arrow").read_bytes(), b""):
        shard.write_bytes(damaged)
        with pytest.raises(InputError, match=r"train-000001.arrow: (trunc.*damaged|holds other).*delete it and run"):
            run(folder, begun, tiny_backbone)
    shard.unlink()
    assert_same(run(folder, begun, tiny_backbone), unbroken)


def test_a_strange_folder_in_the_way_is_left_alone(folder, tiny_backbone, tmp_path):
    (tmp_path / "set.partial").mkdir()
    (tmp_path / "set.partial" / "thesis.txt").write_text("do not delete")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="set.partial: is not an unfinished extraction"):
            run(folder, tmp_path / "set", tiny_backbone, overwrite=overwrite)
    assert (tmp_path / "set.partial" / "thesis.txt").exists()


def no_forward(*_):
    raise RuntimeError("extracted again")


def test_the_same_request_is_answered_from_disk(folder, unbroken, tiny_backbone, monkeypatch):
    monkeypatch.setattr(shard_buffer, "write_shard", no_forward)
    found = run(folder, unbroken.path, tiny_backbone)
    assert found.manifest == unbroken.manifest


def test_a_moved_folder_is_the_same_source(folder, unbroken, tiny_backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_buffer, "write_shard", no_forward)
    (tmp_path / "link").symlink_to(folder)
    assert run(tmp_path / "link", unbroken.path, tiny_backbone).fingerprint == unbroken.fingerprint


def test_other_weights_transform_source_or_dtype_are_refused_by_name(
    folder, unbroken, tiny_backbone, tmp_path, image_folder
):
    state = torch.load(tiny_backbone.checkpoint, weights_only=True)
    state["conv1.0.weight"] += 1e-3
    torch.save(state, tmp_path / "other.pth")
    cases = [
        ({"checkpoint": tmp_path / "other.pth"}, folder, r"other backbone weights \("),
        ({"image_size": 48}, folder, r"another transform \(resize"),
        ({"dtype": "float32"}, folder, r"another dtype \(float16, now float32\)"),
        ({}, image_folder({"cat": 12, "dog": 11, "owl": 10}), r"another source \(class names"),
    ]
    for options, images, message in cases:
        with pytest.raises(InputError, match=f"holds features made with {message}.*overwrite"):
            run(images, unbroken.path, tiny_backbone, **options)
    everything = {"image_size": 48, "checkpoint": tmp_path / "other.pth"}
    with pytest.raises(InputError, match="other backbone weights .* and another transform"):
        run(folder, unbroken.path, tiny_backbone, **everything)


def test_overwrite_replaces(folder, tiny_backbone, tmp_path):
    first = run(folder, tmp_path / "set", tiny_backbone)
    second = run(folder, tmp_path / "set", tiny_backbone, image_size=48, overwrite=True)
    assert first.fingerprint != second.fingerprint
    assert FeatureSet.load(tmp_path / "set").fingerprint == second.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_of_something_else_is_never_replaced(folder, tiny_backbone, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("do not delete")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="thesis: exists and is not a feature set; choose another `out`"):
            run(folder, tmp_path / "thesis", tiny_backbone, overwrite=overwrite)
    assert (tmp_path / "thesis" / "thesis.txt").exists()

import errno
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from headsmith.core.errors import InputError
from headsmith.core.files import make_folder, new_file, new_folder, only_writer, read_json, sha256_file, write_json


def test_a_folder_appears_whole(tmp_path):
    with new_folder(tmp_path / "a" / "out") as folder:
        (folder / "x").write_text("1")
        assert not (tmp_path / "a" / "out").exists()
    assert (tmp_path / "a" / "out" / "x").read_text() == "1"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_folder_that_fails_leaves_nothing_and_keeps_the_old_one(tmp_path, error):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    with pytest.raises(error), new_folder(tmp_path / "out", replace="old") as folder:
        (folder / "new").touch()
        raise error
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "old"]


def test_an_existing_folder_is_kept_unless_told(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    with pytest.raises(InputError, match=r"out: exists already; .* `overwrite`"), new_folder(tmp_path / "out"):
        pass
    with new_folder(tmp_path / "out", replace="old") as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new"]
    assert len(list(tmp_path.iterdir())) == 1


def test_only_a_folder_of_its_kind_is_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").touch()
    with (
        pytest.raises(InputError, match=r"photos: holds no run\.json, so it is not replaced"),
        new_folder(tmp_path / "photos", replace="run.json"),
    ):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["photos", "1.jpg"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    with new_folder(tmp_path / "out") as folder:
        (folder / "new").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "new"]


def test_a_file_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(OSError), new_file(path) as temporary:
        temporary.write_text("half")
        raise OSError
    assert read_json(path) == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_sha256_of_a_known_text(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")  # FIPS 180-2, appendix B.1
    assert sha256_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_json_that_is_none(tmp_path):
    with pytest.raises(InputError, match="gone.json: not found"):
        read_json(tmp_path / "gone.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(InputError, match="holds a JSON list, expected an object"):
        read_json(tmp_path / "x.json")


def test_permissions_are_the_umask_s(tmp_path):
    before = os.umask(0o027)
    try:
        with new_folder(tmp_path / "folder") as folder:
            save_file({"x": np.zeros(1)}, folder / "x.safetensors")
        with new_file(tmp_path / "y.safetensors") as file:
            save_file({"x": np.zeros(1)}, file)
    finally:
        os.umask(before)
    for file in (tmp_path / "folder" / "x.safetensors", tmp_path / "y.safetensors"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("make", [new_folder, new_file])
@pytest.mark.parametrize(("number", "named"), [(errno.ENOSPC, True), (errno.EFBIG, True), (errno.ECONNRESET, False)])
def test_a_full_disk_is_told_with_what_was_being_made(tmp_path, make, number, named):
    with pytest.raises(OSError, match=os.strerror(number)) as error, make(tmp_path / "out"):
        raise OSError(number, os.strerror(number))
    assert error.value.filename == (str(tmp_path / "out") if named else None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ['{"k": 1, "k": 5}', '{"a": {"k": 1, "b": 2, "k": 1}}', '[{"k": 1, "k": 1}]', '{"a": ' * 9000, "9" * 5000]
)
def test_json_that_readers_would_take_differently(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=r"x\.json: not valid JSON") as error:
        read_json(tmp_path / "x.json")
    assert ("'k' is repeated" in str(error.value)) == ('"k"' in text)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_folder_that_takes_no_files_is_not_called_busy():
    with pytest.raises(InputError, match="/proc/x: /proc takes no files"), only_writer(Path("/proc/x"), "training"):
        pytest.fail("nothing can be written there")


@pytest.mark.parametrize("place", ["file/x", "file/deeper/x"])
@pytest.mark.parametrize("make", [new_folder, new_file, lambda path: only_writer(path, "training")])
def test_nothing_is_made_below_a_file(tmp_path, make, place):
    (tmp_path / "file").write_text("kept")
    with (
        pytest.raises(InputError, match=r"x: .*file is no folder, so that nothing can be made in it"),
        make(tmp_path / place),
    ):
        pass
    with pytest.raises(InputError, match="file is no folder"):
        make_folder(tmp_path / place)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_no_folder_is_made_in_place_of_a_file(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="file is no folder"):
        make_folder(tmp_path / "file")

"""What processes that were really killed left is put right by the next run, and nothing that is in use is touched."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from headsmith.core.errors import InputError
from headsmith.core.files import check_free, new_file, new_folder

HALF_WRITTEN = """
import sys, time
from headsmith.core.files import {make}
with {make}(sys.argv[1]{options}) as made:
    (made / "part").write_text("half") if made.is_dir() else made.write_text("half")
    print("there", flush=True)
    time.sleep(60)
"""
# Killed where the old folder is moved away and the new one not yet in its place.
BETWEEN = """
import os, pathlib, signal, sys
from headsmith.core.files import new_folder
rename = pathlib.Path.rename
def die(self, target):
    if self.suffix == ".tmp":
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
pathlib.Path.rename = die
with new_folder(sys.argv[1], replace="old") as made:
    (made / "new").touch()
"""


@contextmanager
def writing(out, make="new_folder", options=""):
    code = HALF_WRITTEN.format(make=make, options=options)
    with subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("make", [new_folder, new_file])
def test_what_a_killed_process_left_goes_with_the_next_run(make, tmp_path, caplog):
    out = tmp_path / "out[1]"
    with writing(out, make.__name__) as process:
        (left,) = tmp_path.iterdir()
        with make(out):  # while the other one is at work
            pass
        assert left.exists()
        process.kill()
        process.wait()
    assert left.exists()
    with make(tmp_path / "out"), make(tmp_path / "out[1].b"):  # other outputs
        pass
    assert left.exists()
    (out.rmdir if make is new_folder else out.unlink)()
    with make(out):
        pass
    assert not left.exists()
    assert f"{left}: removed" in caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out[1]", "out[1].b"]


def test_what_was_moved_away_for_one_that_never_came_comes_back(tmp_path, caplog):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("precious")
    done = subprocess.run([sys.executable, "-c", BETWEEN, str(out)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not out.exists()
    with pytest.raises(InputError, match="out: exists already"):
        check_free(out)
    assert (out / "old").read_text() == "precious"
    assert "came back" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_links_and_files_of_other_programs_are_left_alone(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis").touch()
    (tmp_path / ".out.abc.tmp").symlink_to(tmp_path / "elsewhere")
    strange = [".out.tmp", ".out.a.b.tmp", "out.abc.tmp", ".out.abc.temp"]
    for name in strange:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / ".out.pipe.tmp")
    with new_file(tmp_path / "out"):
        pass
    assert (tmp_path / "elsewhere" / "thesis").exists()
    assert {path.name for path in tmp_path.iterdir()} >= {*strange, "elsewhere", "out"}

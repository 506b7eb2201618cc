import os

import pytest

from headsmith.core.errors import InputError
from headsmith.core.text_file import read_lines, read_text


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_windows_saved_is_the_same_text(tmp_path, ends, mark):
    file = tmp_path / "names.txt"
    file.write_bytes((mark + ends.join(["ant", "b e", "\u0107at", "", " ", ""])).encode())
    assert read_lines(file) == ["ant", "b e", "\u0107at"]


def test_a_blank_line_in_the_middle_stays(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("ant\n\nbee\n")
    assert read_lines(file) == ["ant", "", "bee"]
    file.write_text("")
    assert read_lines(file) == []


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    file = tmp_path / "names.txt"
    file.write_bytes(b"ant\nb\xe9e\n")  # Latin-1
    with pytest.raises(InputError, match=r"names.txt: line 2: byte 0xe9 is not UTF-8"):
        read_text(file)
    file.write_bytes("ant\n".encode("utf-16"))
    with pytest.raises(InputError, match="line 1: byte 0xff"):
        read_lines(file)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a named pipe"), ("/dev/zero", "a device"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=f"is {kind}, expected a regular file"):
            read_text(path)
    for path in (tmp_path / "none", tmp_path / "a\0b", tmp_path / ("n" * 300)):
        with pytest.raises(InputError, match=r"not found|cannot be opened"):
            read_text(path)

"""Archives whose readers could find different members are refused; what stays is read as torch and zipfile read it."""

import io
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
import torch

from headsmith.core.archive import checked_archive, is_archive
from headsmith.core.errors import DamagedFileError

GOOD = {"data.pkl": b"pickle" * 50, "byteorder": b"little", "data/0": bytes(range(256))}


def zipped(members, path=None, **how):
    with io.BytesIO() as file:
        with warnings.catch_warnings(), zipfile.ZipFile(file, "w", **how) as archive:
            warnings.simplefilter("ignore")  # of duplicate names
            for name, content in members:
                archive.writestr(name, content)
        return file.getvalue()


def good(**how):
    return zipped([(f"a/{name}", content) for name, content in GOOD.items()], **how)


def directory_at(data):
    return struct.unpack_from("<L", data, len(data) - 6)[0]


def with_end(data, *, directory=None, length=None, count=None, comment=b""):
    """The file with other values in its end record."""
    begin, end = directory_at(data), len(data) - 22
    count = struct.unpack_from("<H", data, end + 10)[0] if count is None else count
    size = end - begin if length is None else length
    record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, begin if directory is None else directory, 0)
    return data[:end] + record[:-2] + struct.pack("<H", len(comment)) + comment


def two_directories():
    """The end record states the offset of one directory; another lies just before the record, as long."""
    data = good()
    begin = directory_at(data)
    other = data[begin:-22].replace(b"data/0", b"data/9")
    return with_end(data[:-22] + other + data[-22:], directory=begin, length=len(other))


def swapped_directory():
    """The same the other way round: the record's offset is too small by the length of what was put in between."""
    data = good()
    begin = directory_at(data)
    hidden = data[begin:-22]
    return with_end(data[:begin] + hidden + data[begin:], directory=begin, length=len(hidden))


def long_records(*, locator=None, begin=None):
    """The file with a 64-bit end record, which may state another directory than the 32-bit one."""
    data = good()
    at, end = directory_at(data), len(data) - 22
    record = struct.pack(
        "<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, len(GOOD), len(GOOD), end - at, at if begin is None else begin
    )
    return (
        data[:end] + record + struct.pack("<4sLQL", b"PK\6\7", 0, end if locator is None else locator, 1) + data[end:]
    )


def other_local_name():
    return good().replace(b"a/data/0", b"a/data/1", 1)


def overlapping():
    """Two entries of the directory for one member's bytes."""
    data = good()
    begin = directory_at(data)
    entry = data[begin : data.index(b"PK\1\2", begin + 4)]
    twin = entry.replace(b"data.pkl", b"twin.pkl")
    longer = data[:begin] + twin + data[begin:]
    return with_end(longer, directory=begin, length=len(longer) - 22 - begin, count=len(GOOD) + 1)


def hidden_bytes():
    data = good()
    begin = directory_at(data)
    return with_end(data[:begin] + b"hidden" * 10 + data[begin:], directory=begin + 60, length=len(data) - 22 - begin)


def inflated_too_far():
    """The header says 4 bytes, the stream holds a million."""
    data = zipped([("a/x", bytes(1 << 20))], compression=zipfile.ZIP_DEFLATED)
    return data.replace(struct.pack("<L", 1 << 20), struct.pack("<L", 4))


def flipped():
    data = bytearray(good())
    data[data.index(b"pickle") + 100] ^= 1
    return bytes(data)


def encrypted():
    data = bytearray(good())
    for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + flags] |= 1
    return bytes(data)


BAD = {
    "does not end at its end record": [two_directories, swapped_directory, lambda: with_end(good(), directory=7)],
    "end with its end record": [
        lambda: good() + b"\0",
        lambda: with_end(good(), comment=b"PK\5\6 and more"),
        lambda: good() + good()[-22:] + b"x",
        lambda: good()[:-1],
        lambda: good()[:50],
    ],
    "does not end at": [lambda: good() + good()[-22:], lambda: b"#!/bin/sh\n" + good(), lambda: good() + good()],
    "two end records differ": [lambda: long_records(locator=3), lambda: long_records(begin=3)],
    "header of 'a/data/0' is not": [other_local_name],
    "a name is repeated": [
        lambda: zipped([("a/x", b"1"), ("a/x", b"2")]),
        lambda: zipped([("a/x", b"1"), ("a/X", b"2")]),
    ],
    "bytes before": [hidden_bytes],
    "header of 'a/(data|twin).pkl' is not|bytes before": [overlapping],
    "checksum is wrong": [flipped, inflated_too_far],
    "encrypted, or compressed": [encrypted, lambda: good(compression=zipfile.ZIP_LZMA)],
    "a member is called": [
        lambda: zipped([("x", b"1")]),
        lambda: zipped([("a/../../x", b"1")]),
        lambda: zipped([("/a/x", b"1")]),
        lambda: zipped([("a/x\ny", b"1")]),
        lambda: zipped([("a/b/", b"")]),
        lambda: zipped([("a/b\\c", b"1")]),
    ],
    "2 folders in it": [lambda: zipped([("a/x", b"1"), ("b/y", b"2")])],
    "0 folders in it": [lambda: zipped([])],
    "members, the end record says": [lambda: with_end(good(), count=2)],
}


@pytest.mark.parametrize(("reason", "make"), [(reason, make) for reason, makes in BAD.items() for make in makes])
def test_an_archive_that_two_readers_may_read_in_two_ways_is_refused(tmp_path, reason, make):
    path = tmp_path / "a.pt"
    path.write_bytes(make())
    with pytest.raises(
        DamagedFileError, match=rf"a\.pt: damaged or not a torch archive .*({reason}).*; get it again"
    ) as refused:
        checked_archive(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "make", [good, long_records, lambda: good(compression=zipfile.ZIP_DEFLATED)], ids=["plain", "64 bits", "deflated"]
)
def test_members_are_those_that_zipfile_finds_in_it_and_in_its_copy(tmp_path, make):
    path = tmp_path / "a.pt"
    path.write_bytes(make())
    archive = checked_archive(path)
    assert {name: archive.read(name) for name in archive.members} == GOOD
    with archive.rebuilt() as copy, zipfile.ZipFile(copy) as read:
        assert copy.name == "a.pt" and {name: read.read(name) for name in read.namelist()} == {
            f"a/{name}": content for name, content in GOOD.items()
        }
    assert not copy.exists() and is_archive(path)


def test_what_torch_writes_is_taken_and_torch_reads_the_copy(tmp_path):
    values = {"weight": torch.arange(6.0).reshape(2, 3), "empty": torch.zeros(0), "names": ["a", "b"]}
    for name in ("plain.pt", "Größe.pt"):
        torch.save(values, tmp_path / name)
        with checked_archive(Path(tmp_path / name)).rebuilt() as copy:
            read = torch.load(copy, weights_only=True)
        assert torch.equal(read["weight"], values["weight"]) and read["names"] == ["a", "b"]


def test_a_file_that_changes_after_it_was_checked_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(good())
    archive = checked_archive(path)
    path.write_bytes(flipped())
    with pytest.raises(DamagedFileError, match="checksum"), archive.rebuilt():
        pass


def test_older_files_of_torch_are_no_archives(tmp_path):
    torch.save(torch.zeros(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert not is_archive(tmp_path / "old.pt")

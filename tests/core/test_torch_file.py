"""Files of torch.save: a flipped bit is found, a storage cannot reach beyond its file, nothing is run."""

import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch

from headsmith.core.errors import DamagedFileError
from headsmith.core.torch_file import PicklesError, load_tensors

VALUES = {"weight": torch.arange(6.0).reshape(2, 3), "names": ["a", "b"], "epoch": 3}


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_wrote_is_read(tmp_path, zipped):
    torch.save(VALUES, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    found = load_tensors(tmp_path / "a.pt")
    assert torch.equal(found["weight"], VALUES["weight"]) and found["names"] == ["a", "b"] and found["epoch"] == 3


def test_a_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(VALUES, path)
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<f", 5.0))] ^= 1  # torch itself reads another number
    path.write_bytes(bytes(data))
    assert torch.load(path)["weight"][1, 2] != 5
    with pytest.raises(DamagedFileError, match="a checksum is wrong"):
        load_tensors(path)


def test_a_storage_that_states_more_than_the_file_holds_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(100), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pickled = members["a/data.pkl"]
    assert pickled.count(b"Kd") == 2  # entries of the storage, and of the tensor
    members["a/data.pkl"] = pickled.replace(b"Kd", b"J" + struct.pack("<i", 1 << 28))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(DamagedFileError, match="damaged or not a torch.save file"):
        load_tensors(path)


def old_file(path, values=VALUES):
    torch.save(values, path, _use_new_zipfile_serialization=False)
    return path.read_bytes()


@pytest.mark.parametrize("length", [1 << 31, 0xFFFFFFF0])
@pytest.mark.parametrize("text", [b"little_endian", b"weight", b"FloatStorage"])
def test_an_old_file_takes_no_memory_for_text_that_it_does_not_hold(tmp_path, text, length):
    path = tmp_path / "a.pt"
    data = old_file(path)
    start = data.index(text)
    stated = data[start - 4 : start]
    if stated == struct.pack("<I", len(text)):
        path.write_bytes(data[: start - 4] + struct.pack("<I", length) + data[start:])
    else:  # a name of torch's, where text is put before
        path.write_bytes(data[:200] + b"X" + struct.pack("<I", length) + data[200:])
    tracemalloc.start()
    with pytest.raises(DamagedFileError, match="damaged or not a torch.save file"):
        load_tensors(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 24


def test_an_old_file_with_tensors_that_it_does_not_hold_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    data = old_file(path, [torch.zeros(100), torch.zeros(100)])
    assert data.count(b"Kd") == 4
    keys = data.rindex(b"\x80\x02")  # the storages that follow: none, so that torch leaves the memory as it was
    data = data[:keys].replace(b"Kd", b"J" + struct.pack("<i", 1 << 20)) + pickle.dumps([], 2)
    path.write_bytes(data)
    assert torch.load(path)[0].shape == (1 << 20,)
    with pytest.raises(DamagedFileError, match="tensors of 8,388,608 bytes in a file of "):
        load_tensors(path)


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("zipped", [True, False])
def test_pickled_objects_are_refused_and_not_run(tmp_path, zipped):
    torch.save({"x": Touch(tmp_path / "marker")}, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(PicklesError, match="holds pickled objects other than tensors, which could run code"):
        load_tensors(tmp_path / "a.pt")
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\3\4", b"\x80\x02.", b"\xff\xd8\xff\xe0 a photograph"])
def test_what_is_none_is_told_in_a_line(tmp_path, content):
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.pt: damaged or not .*; get it again") as error:
        load_tensors(tmp_path / "a.pt")
    assert "\n" not in str(error.value)

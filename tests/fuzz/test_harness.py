"""The harness finds every kind of fault that a reader can have."""

import ctypes
import json
import time
import zipfile
from random import Random

import harness
import pytest
from harness import Target
from mutations import kinds

from headsmith.core.errors import InputError


@pytest.fixture(autouse=True)
def own_counts(monkeypatch):
    for name in ("FUZZ_MUTATIONS", "FUZZ_FIRST", "FUZZ_SEED"):
        monkeypatch.delenv(name, raising=False)


def write(folder):
    path = folder / "x.bin"
    path.write_bytes(bytes(range(256)) * 8)
    return path


def careful(path):
    data = path.read_bytes()
    if data != bytes(range(256)) * 8:
        raise InputError(f"{path}: damaged")
    return data


def after_damage(then):
    def read(path):
        try:
            return careful(path)
        except InputError:
            return then(path)

    return read


def two_lines(path):
    error = InputError(f"{path}: damaged")
    error.args = (f"{path}:\ndamaged",)
    raise error


def greedy(path):
    try:
        return len(bytearray(3 << 30))
    except MemoryError:
        raise InputError(f"{path}: damaged") from None


FAULTS = {
    "exception Traceback.*KeyError": lambda path: {}["x"],
    "signal Segmentation fault": lambda path: ctypes.string_at(0),
    "1 s were not enough": lambda path: time.sleep(9),
    "refused only when memory ran out": greedy,
    "not one line": two_lines,
    "other content, unseen": lambda path: b"another",
}


def test_a_careful_reader_passes(fuzz):
    ends = fuzz(Target("careful", write, careful, change_is_seen=True, count=60))
    assert sum(ends.values()) == 60 and set(ends) <= {"same", "refused"} and ends["refused"] > 40


@pytest.mark.parametrize("fault", FAULTS)
def test_every_kind_of_fault_is_found_and_named(fuzz, fault, monkeypatch):
    monkeypatch.setattr(harness, "SECONDS", 1)
    target = Target("faulty", write, after_damage(FAULTS[fault]), change_is_seen=True, count=2)
    with pytest.raises(AssertionError, match=rf"(?s)FUZZ_SEED=0 FUZZ_FIRST=\d FUZZ_MUTATIONS=1.*{fault}"):
        fuzz(target)


def test_other_content_is_allowed_where_the_format_has_no_checksum(fuzz):
    ends = fuzz(Target("bitmap", write, lambda path: path.read_bytes(), change_is_seen=False, count=40))
    assert ends["changed"] > 20


def test_mutations_are_repeatable_and_change_something():
    data, other = json.dumps({"a": [1, 2, {"c": "d"}]}).encode(), bytes(range(256))
    for kind in kinds("x.json", data):
        first, again = ([kind.apply(data, other, Random(number)) for number in range(40)] for _ in range(2))
        assert first == again and sum(changed != data for changed in first) > 20, kind.name


def test_one_file_of_a_folder_is_damaged_and_made_healthy_again(fuzz):
    def healthy(folder):
        with zipfile.ZipFile(folder / "a.zip", "w") as archive:
            archive.writestr("x", b"content")
        (folder / "b.json").write_text(json.dumps({"a": [1, 2, {"c": "d"}]}))
        return folder

    def read(folder):
        broken = []
        with zipfile.ZipFile(folder / "a.zip") as archive:
            if archive.read("x") != b"content":
                broken.append("zip")
        if json.loads((folder / "b.json").read_text()) != {"a": [1, 2, {"c": "d"}]}:
            broken.append("json")
        assert len(broken) < 2
        return broken

    def checked(folder):
        try:
            return read(folder)
        except (ValueError, OSError, KeyError, zipfile.BadZipFile, NotImplementedError, RecursionError, EOFError):
            raise InputError("damaged") from None

    ends = fuzz(Target("folder", healthy, checked, change_is_seen=False, count=80))
    assert ends["refused"] > 20 and ends["changed"] > 2

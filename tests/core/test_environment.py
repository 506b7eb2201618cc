"""What memory is left, by the files that cgroups(7), the kernel's memory.rst (v1) and cgroup-v2.rst describe."""

import importlib.metadata

import psutil
import pytest

from headsmith.core import environment

GB = 10**9


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A function: the text of /proc/self/cgroup, and the files under /sys/fs/cgroup."""
    monkeypatch.setattr(environment, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(environment, "_MOUNT", tmp_path / "mount")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 64 * GB, "total": 128 * GB}))

    def make(own, **folders):
        (tmp_path / "own").write_text(own)
        for folder, files in folders.items():
            place = tmp_path / "mount" / folder.replace("__", "/").removeprefix("root")
            place.mkdir(parents=True, exist_ok=True)
            for name, value in files.items():
                (place / name).write_text(f"{value}\n")

    return make


def second(limit, used, idle=0):
    return {"memory.max": limit, "memory.current": used, "memory.stat": f"anon 1\ninactive_file {idle}"}


def first(limit, used, idle=0):
    statistics = f"inactive_file 7\ntotal_inactive_file {idle}"
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": used, "memory.stat": statistics}


NONE_1 = 9223372036854771712  # what version 1 calls no limit


@pytest.mark.parametrize(
    ("own", "folders", "expected"),
    [
        ("0::/", {"root": second(8 * GB, 3 * GB)}, 5 * GB),  # a container with a namespace of its own
        ("0::/a/b", {"a": second(4 * GB, 1 * GB), "a__b": second("max", 1 * GB)}, 3 * GB),  # the outer one limits
        ("0::/a/b", {"a": second(9 * GB, 1 * GB), "a__b": second(2 * GB, 1 * GB)}, 1 * GB),  # the inner one does
        ("0::/", {"root": second(8 * GB, 7 * GB, 4 * GB)}, 5 * GB),  # files that were read count for nothing
        ("0::/", {"root": second(1 * GB, 2 * GB)}, 0),  # a limit that was lowered
        ("0::/", {"root": second("max", 3 * GB)}, 64 * GB),
        ("0::/../host/path", {"root": second(8 * GB, 3 * GB)}, 5 * GB),  # a group outside of the namespace's root
        ("5:cpu:/x\n4:memory:/x\n0::/", {"memory__x": first(6 * GB, 2 * GB, 1 * GB)}, 5 * GB),
        ("4:cpu,memory:/docker/abc", {"memory": first(6 * GB, 2 * GB)}, 4 * GB),  # the host's path, seen from inside
        ("4:memory:/x", {"memory": first(3 * GB, 1 * GB), "memory__x": first(NONE_1, 1 * GB)}, 2 * GB),
        ("4:memory:/x", {"memory__x": first(NONE_1, 1 * GB)}, 64 * GB),
        ("no line of this kind", {}, 64 * GB),
    ],
)
def test_what_a_process_may_still_take(groups, own, folders, expected):
    groups(own, **folders)
    assert environment.free_memory() == expected


def test_where_there_are_no_control_groups(groups):
    assert environment.free_memory() == 64 * GB


def test_versions_are_read_once_and_nobody_can_change_them(monkeypatch):
    first = environment.versions()
    monkeypatch.setattr(environment, "version", lambda package: pytest.fail(f"{package} read again"))
    first["torch"] = "changed"
    assert environment.versions()["torch"] == importlib.metadata.version("torch")

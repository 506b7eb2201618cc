"""What a result was made with: versions and devices."""

import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from .counted import counted
from .errors import InputError
from .printable import shown

if TYPE_CHECKING:
    import torch

# The distributions of onnxruntime, which all are imported by that name.
RUNTIMES = ("onnxruntime-gpu", "onnxruntime", "onnxruntime-openvino", "onnxruntime-directml")
PACKAGES = (
    "headsmith",
    "torch",
    "torchvision",
    "timm",
    "datasets",
    "numpy",
    "pillow",
    "onnx",
    "onnxscript",
    *RUNTIMES,
    "scikit-learn",
)

_OWN_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Files of a control group: the limit, what is used, and the line of memory.stat with what can be had back.
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_VERSION_2 = "memory.max", "memory.current", "inactive_file"


def versions() -> dict[str, str]:
    """Versions of Python, the platform and every installed package that can change a result."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    """Read once: a process keeps what it has imported, whatever is installed meanwhile."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def pick_device(name: str) -> "torch.device":
    """The device called ``auto`` (CUDA when there is one), ``cpu`` or ``cuda``.

    Raises:
        InputError: Another name, or ``cuda`` where torch finds no CUDA device.
    """
    import torch

    kind = name.partition(":")[0]
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if kind not in ("cpu", "cuda"):
        raise InputError(f"--device: {shown(name)} found, expected auto, cpu or cuda")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device: {name} found, but torch {torch.__version__} finds no CUDA device; use cpu")
    return torch.device(name)


def describe_device(device: "torch.device") -> str:
    """The device in words: the card's name, or ``cpu (N threads)``."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return describe_cpu(torch.get_num_threads())


def describe_cpu(threads: int) -> str:
    """The CPU in words."""
    return f"cpu ({counted(threads, 'thread')})"


def cpu_name() -> str:
    """The model of the CPU, as Linux names it; elsewhere what the system says of it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def free_memory() -> int:
    """Bytes of RAM that this process may still take: what the system can spare, and what its control groups leave.

    Version 1 and 2 of Linux' control groups are read, a group and all those around it. Of what a group uses, pages of
    files that nobody reads any more can be had back (``inactive_file``), as Kubernetes counts it.
    """
    import psutil

    room = [limit - used for limit, used in _groups()]
    return max(0, min([int(psutil.virtual_memory().available), *room]))


def _groups() -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of every control group with a limit that this process is in."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, _, group = line.partition(":")
        kinds, _, path = group.partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        mount, files = (_MOUNT / "memory", _VERSION_1) if kinds else (_MOUNT, _VERSION_2)
        # In a container the path may be the host's, of which only the mount itself is seen.
        places = [part for part in Path(path.lstrip("/")).parts if part != ".."]
        for depth in range(len(places), -1, -1):
            with suppress(OSError, ValueError):  # no such group here, or one without a limit
                yield _limit_and_use(mount.joinpath(*places[:depth]), *files)


def _limit_and_use(group: Path, limit: str, used: str, idle: str) -> tuple[int, int]:
    statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int((group / limit).read_text()), int((group / used).read_text()) - int(statistics.get(idle, 0))

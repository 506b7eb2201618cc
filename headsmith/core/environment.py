"""What a result was made with: versions and devices."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InputError

if TYPE_CHECKING:
    import torch

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
    "onnxruntime-gpu",
    "onnxruntime",
    "scikit-learn",
)


def versions() -> dict[str, str]:
    """Versions of Python, the platform and every installed package that can change a result."""
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
        raise InputError(f"--device: {name!r} is not known; expected auto, cpu or cuda")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device {name}: torch {torch.__version__} finds no CUDA device; use --device cpu")
    return torch.device(name)


def describe_device(device: "torch.device") -> str:
    """The device in words: the card's name, or ``cpu (N threads)``."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"cpu ({torch.get_num_threads()} threads)"


def free_memory() -> int:
    """Bytes of RAM that this process may still take: what the system can spare, and a container's limit."""
    import psutil

    free = int(psutil.virtual_memory().available)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return min(free, int(limit.read_text()) - int(used.read_text()))
    except (OSError, ValueError):  # no control groups, or no limit
        return free

"""How many CPUs this process may use: not those of the host."""

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """The CPUs of the process' affinity mask, or fewer where a container's quota allows less time; at least 1."""
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affine, _quota() or affine))


def default_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set, else `usable_cpus`."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else usable_cpus()


def _quota() -> int | None:
    """A container's quota in whole CPUs, rounded up: of control groups in version 2, else in version 1."""
    try:
        quota, period = (_GROUPS / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota, period = (
                (_GROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii") for name in ("quota", "period")
            )
        except OSError:
            return None
    try:
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else None
    except (ValueError, ZeroDivisionError):  # "max": no limit
        return None

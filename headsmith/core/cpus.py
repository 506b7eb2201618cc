"""How many CPUs this process may use: not those of the host."""

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
# So many threads or processes may be asked for on any machine, however few its cores.
_MANY = 64


def usable_cpus() -> int:
    """The CPUs of the process' affinity mask, or fewer where a container's quota allows less time; at least 1."""
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affine, _quota() or affine))


def default_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set, at most `most_threads`, else `usable_cpus`."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    known = asked.isdecimal() and len(asked) < 10 and int(asked) > 0
    return min(int(asked), most_threads()) if known else usable_cpus()


def logical_cpus() -> int:
    """The CPUs of the machine, whoever may use them."""
    return os.cpu_count() or 1


def most_threads() -> int:
    """How many threads or processes may be asked for: 64, or as many as the machine has logical cores."""
    return max(_MANY, logical_cpus())


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

"""Whether other programs kept the machine busy while something was timed."""

import os
import time

import psutil

# So little is what every system does by itself; so much of all CPUs leaves none free.
LITTLE, FULL = 0.15, 0.9
# The system counts in ticks of 10 ms, each CPU for itself: in less time a few ticks look like many busy CPUs.
SHORTEST_SECONDS = 0.2


class Watch:
    """Counts what CPUs did from its making on, on the CPUs that this process may use."""

    def __init__(self) -> None:
        self._cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        self._wall, self._own, (self._all, self._count) = time.perf_counter(), time.process_time(), self._used()

    def disturbed(self) -> float | None:
        """CPUs that other programs took meanwhile, where hardly any was free besides; else ``None``.

        ``None`` too after less than `SHORTEST_SECONDS`.
        """
        wall, own, (used, count) = time.perf_counter() - self._wall, time.process_time() - self._own, self._used()
        if wall < SHORTEST_SECONDS:
            return None
        return disturbance((used - self._all) / wall, own / wall, count)

    def _used(self) -> tuple[float, int]:
        """Seconds that the CPUs were used so far, by anybody, and how many CPUs they are."""
        every = psutil.cpu_times(percpu=True)
        known = [cpu for cpu in self._cpus or () if cpu < len(every)]
        chosen = [every[cpu] for cpu in known] if known else every
        return sum(sum(cpu) - _idle(cpu) for cpu in chosen), len(chosen)


def disturbance(used: float, own: float, count: int) -> float | None:
    """CPUs that others used, where they are in the way.

    Args:
        used: CPUs that were used, on average, by anybody.
        own: By this process.
        count: How many there are.
    """
    others = max(min(used, count) - own, 0.0)
    return others if others > LITTLE and used > FULL * count else None


def _idle(cpu: object) -> float:
    """Seconds without work; those of guests are in ``user`` already."""
    names = ("idle", "iowait", "guest", "guest_nice")
    return sum(float(getattr(cpu, name, 0.0)) for name in names)

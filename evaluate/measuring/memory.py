"""What memory a file takes, apart from what the process holds already."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

# A file that needs less than this part of its size lives in memory that something before it had left.
ATTRIBUTED = 0.9


class Growth:
    """How much the process grows from its making on."""

    def __init__(self) -> None:
        self._before = _resident()

    def bytes(self, at_least: int) -> int | None:
        """Bytes more than at first; ``None`` where they cannot be attributed.

        Args:
            at_least: What must have come into memory, in bytes: less says that freed memory was used again.
        """
        now = _resident()
        if now is None or self._before is None or now - self._before < ATTRIBUTED * at_least:
            return None
        return now - self._before


@contextmanager
def collected() -> Iterator[None]:
    """Collect garbage once, so that `Growth` looks through what has come since alone: a full look takes a second."""
    own = not gc.get_freeze_count()
    gc.collect()
    if own:
        gc.freeze()
    try:
        yield
    finally:
        if own:
            gc.unfreeze()


def _resident() -> int | None:
    """Resident bytes of this process, what it has freed given back; ``None`` where the system cannot give it back."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # no glibc; Windows has no library of that name
        return None
    return int(psutil.Process().memory_info().rss)

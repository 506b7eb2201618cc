"""A bound on the pixels that are decoded at once, over all threads or processes."""

import ctypes
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ....core.environment import free_memory

# Peak resident bytes a pixel from file to crop, measured on noise: BMP, GIF, JPEG, RGB PNG 8 to 9; RGBA PNG and
# progressive JPEG 13; AVIF 16, with alpha 24; JPEG 2000 21; plain PBM 33. Not measured: WebP, TIFF, RGBA JPEG 2000.
_BYTES_A_PIXEL = 40


class Room:
    """Pixels that may be decoded at once: as many as half of the free memory holds. A larger image goes alone.

    Args:
        processes: Whether forked processes share it, instead of threads.
        pixels: How many; by default what half of the free memory holds.
    """

    def __init__(self, *, processes: bool, pixels: int | None = None) -> None:
        self._most = free_memory() // 2 // _BYTES_A_PIXEL if pixels is None else pixels
        context: Any = multiprocessing.get_context("fork") if processes else threading
        self._changed = context.Condition()
        self._free = context.RawValue("q", self._most) if processes else ctypes.c_longlong(self._most)

    @contextmanager
    def turn(self) -> Iterator[Callable[[int], None]]:
        """The turn of one image.

        Yields:
            A function: called with the number of its pixels before they are decoded, it waits until there is room. The
            room is given back at the end of the block.
        """
        held = 0

        def enter(pixels: int) -> None:
            nonlocal held
            wanted = min(pixels, self._most)
            with self._changed:
                self._changed.wait_for(lambda: self._free.value >= wanted)
                self._free.value -= wanted
                held += wanted

        try:
            yield enter
        finally:
            with self._changed:
                self._free.value += held
                self._changed.notify_all()

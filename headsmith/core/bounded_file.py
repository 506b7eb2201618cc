"""Files of strangers that state lengths: no memory is set aside for more than is there."""

import io
import os
from pathlib import Path

_LARGE = 1 << 16


class ToItsEnd(io.BufferedReader):
    """A file that sets aside no more memory for a long read than it has bytes left."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._size = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, fewer at the end of the file."""
        if size is not None and size > _LARGE:
            size = min(size, max(0, self._size - self.tell()))
        return super().read(size)

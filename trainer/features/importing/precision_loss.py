"""What features lose where they are stored in fewer bits than the files have."""

from collections.abc import Sequence

import numpy as np

from ....core.coded_warnings import CodedWarning
from ....core.counted import counted
from ....core.listed import listed
from ..bit_equal_rows import row_hashes
from .table import TORCH_ONLY, Array, Column


class PrecisionLoss:
    """Values that become 0, columns that become constant and rows that become equal.

    Args:
        found: The dtypes of the files.
        stored: ``float16`` or ``float32``.
    """

    def __init__(self, found: Sequence[str], stored: str) -> None:
        # what holds the values of all files, so that equal rows of two files stay equal
        self._own = np.result_type(*("float32" if name in TORCH_ONLY else name for name in found))
        self._stored = stored
        self._nothing = np.can_cast(self._own, stored, "safe")
        self._vanished: Array | None = None
        self._ranges: dict[bool, tuple[Array, Array]] = {}
        self._hashes: list[Array] = []

    def look(self, values: Array, stored: Array) -> None:
        """Look at rows ``(n, D)``: as they are in the file, and as they are stored."""
        if self._nothing:
            return
        own, zero = values.astype(self._own, copy=False), stored == 0
        if zero.any():
            vanished = ((own != 0) & zero).sum(axis=0)
            self._vanished = vanished if self._vanished is None else self._vanished + vanished
            own, stored = own + 0, stored + 0  # no zero has a sign
        for is_stored, rows in ((False, own), (True, stored)):
            low, high = rows.min(axis=0), rows.max(axis=0)
            before = self._ranges.get(is_stored, (low, high))
            self._ranges[is_stored] = np.minimum(low, before[0]), np.maximum(high, before[1])
        self._hashes.append(np.stack([row_hashes(own), row_hashes(stored)], axis=1))

    def warnings(self, features: Column) -> list[CodedWarning]:
        """The warning of what is lost, if anything is.

        Args:
            features: Names the columns.
        """
        if not self._hashes:
            return []
        found = []
        if self._vanished is not None and self._vanished.any():
            columns = _named(np.flatnonzero(self._vanished), features)
            become = "value that is not 0 becomes", "values that are not 0 become"
            found.append(f"{counted(int(self._vanished.sum()), *become)} 0, in {columns}")
        varied, vary = (high > low for low, high in (self._ranges[False], self._ranges[True]))
        constant = np.flatnonzero(varied & ~vary)
        if constant.size:
            found.append(f"{constant.size:,} of {varied.size:,} columns become constant: {_named(constant, features)}")
        if equal := self._made_equal():
            found.append(f"{counted(equal, 'row that differs becomes', 'rows that differ become')} equal to another")
        if not found:
            return []
        better = "store them with --dtype float32, or " if self._stored == "float16" else ""
        remedy = f"{better}shift and scale such columns before"
        return [CodedWarning("precision", f"as {self._stored}, {'; '.join(found)}; {remedy}")]

    def _made_equal(self) -> int:
        """How many rows are stored as another row is from which the file tells them apart."""
        rows = np.concatenate(self._hashes)
        codes, kinds = np.unique(np.unique(rows, axis=0)[:, 1], return_counts=True)
        return int(np.isin(rows[:, 1], codes[kinds > 1]).sum())


def _named(columns: Array, features: Column) -> str:
    return listed([features.part(column) for column in columns.tolist()])

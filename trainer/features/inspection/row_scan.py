"""One pass over the rows of a split: NaN, infinity, magnitudes, zeros, norms, a hash of each row and of all."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xxhash

from ....core.progress import progress
from ..bit_equal_rows import row_hashes
from ..columns import Columns

Array = np.ndarray[Any, Any]
_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Found:
    """Rows of some kind.

    Attributes:
        count: How many.
        rows: Numbers of the first ones, counted from 0 within the split.
        ids: Ids of the first ones.
    """

    MOST: ClassVar[int] = 5
    count: int
    rows: list[int]
    ids: list[str]

    @classmethod
    def of(cls, marked: Array, columns: Columns) -> Self:
        """From a mark for every row."""
        rows = np.flatnonzero(marked)
        first = rows[: cls.MOST].tolist()
        return cls(len(rows), first, [columns.names[row].as_py() for row in first])

    def __str__(self) -> str:
        more = f" and {self.count - len(self.rows)} more" if self.count > len(self.rows) else ""
        return ", ".join(f"row {row} ({name})" for row, name in zip(self.rows, self.ids, strict=True)) + more


@dataclass(frozen=True)
class Scan:
    """What was seen of every row.

    Attributes:
        nan: ``(N,)`` bool, whether a feature is NaN.
        infinite: ``(N,)`` bool, whether one is infinite.
        absurd: ``(N,)`` bool, whether a finite feature is beyond its column's limit.
        zero: ``(N,)`` bool, whether all are zero.
        hashes: ``(N,)`` uint64; equal for equal rows.
        digest: XXH3-128 of the bytes of all rows, in hexadecimal.
        norm: Smallest, mean and largest norm of finite rows, or ``None``.
        typical_norm: Their median, or ``None``.
    """

    nan: Array
    infinite: Array
    absurd: Array
    zero: Array
    hashes: Array
    digest: str
    norm: tuple[float, float, float] | None
    typical_norm: float | None

    @property
    def finite(self) -> Array:
        """``(N,)`` bool, whether a row can be used."""
        return ~(self.nan | self.infinite)


def scan(columns: Columns, name: str, limits: Array) -> Scan:
    """Read all rows once, some at a time.

    Args:
        columns: The rows.
        name: What progress calls them.
        limits: ``(D,)``, the largest magnitude that is no damage.
    """
    features = columns.features
    nan, infinite, absurd = (np.zeros(len(features), bool) for _ in range(3))
    norms, hashes = np.empty(len(features)), np.empty(len(features), np.uint64)
    digest, beyond = xxhash.xxh3_128(), torch.from_numpy(limits)
    with progress(f"Reading {name}", len(features), "rows") as advance:
        for rows in _blocks(features):
            block = np.ascontiguousarray(features[rows])
            digest.update(block.data)
            hashes[rows] = row_hashes(block)
            values = torch.from_numpy(block).float()
            norms[rows] = torch.linalg.vector_norm(values, dim=1).numpy()
            odd = np.flatnonzero(~(norms[rows] <= limits.min()))  # NaN among them
            values = values[odd].double()
            norms[rows][odd] = torch.linalg.vector_norm(values, dim=1).numpy()
            nan[rows][odd] = values.isnan().any(dim=1).numpy()
            infinite[rows][odd] = values.isinf().any(dim=1).numpy()
            absurd[rows][odd] = ((values.abs() > beyond) & values.isfinite()).any(dim=1).numpy()
            advance(len(block))
    usable = norms[~(nan | infinite)]
    norm = (float(usable.min()), float(usable.mean()), float(usable.max())) if usable.size else None
    typical = float(np.median(usable)) if usable.size else None
    return Scan(nan, infinite, absurd, norms == 0, hashes, digest.hexdigest(), norm, typical)


def _blocks(features: Array) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // max(1, features.itemsize * features.shape[1]))
    yield from (slice(start, start + step) for start in range(0, len(features), step))

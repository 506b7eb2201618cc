"""Whether two answers are equal: the one place that decides it. NaN and infinity are equal to nothing."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Difference:
    """How far the entries of two arrays lie apart.

    Attributes:
        rows: Rows of the two.
        not_finite: Rows with NaN or infinity in either.
        entries: Entries that were compared: those of the other rows.
        largest: Largest absolute difference of these; 0 where there are none.
        total: Sum of the absolute differences.
        shapes: Where dtype or shape are not the same, what was found and what was expected; such arrays are not
            compared.
    """

    rows: int = 0
    not_finite: int = 0
    entries: int = 0
    largest: float = 0.0
    total: float = 0.0
    shapes: str = ""

    @property
    def mean(self) -> float:
        """Mean absolute difference of an entry; 0 where there are none."""
        return self.total / max(1, self.entries)

    def within(self, limit: float) -> bool:
        """Whether the two are equal up to ``limit``; never where one of them was not finite, or of another shape."""
        return not (self.not_finite or self.shapes) and self.largest <= limit

    def __add__(self, other: "Difference") -> "Difference":
        """The difference over the entries of both."""
        return Difference(
            self.rows + other.rows,
            self.not_finite + other.not_finite,
            self.entries + other.entries,
            max(self.largest, other.largest),  # neither is NaN
            self.total + other.total,
            self.shapes or other.shapes,
        )


def difference(expected: Array, found: Array) -> Difference:
    """Compare two arrays ``(N, ...)`` entry by entry, in float64."""
    if shapes := other_shape(expected, found):
        return Difference(len(expected), shapes=shapes)
    finite = finite_rows(expected, found)
    gaps = np.abs(expected[finite].astype(np.float64) - found[finite])
    lost = len(finite) - int(finite.sum())
    return Difference(len(finite), lost, gaps.size, float(gaps.max(initial=0.0)), float(gaps.sum()))


def alike(expected: Array, found: Array, share: float) -> bool:
    """Whether two arrays ``(N, ...)`` are equal up to a share of the largest entry of each row.

    What is finite in neither counts as equal: it is judged elsewhere.
    """
    if expected.shape != found.shape or (np.isfinite(expected) != np.isfinite(found)).any():
        return False
    pairs = zip(*(np.where(np.isfinite(expected), array, 0) for array in (expected, found)), strict=True)
    return all(difference(one, other).within(share * np.abs(one).max(initial=0.0)) for one, other in pairs)


def other_shape(expected: Array, found: Array | None) -> str:
    """How dtype and shape of an array differ from what is expected, in words; empty where they do not."""
    if found is None:
        return "missing"
    if (expected.dtype, expected.shape) == (found.dtype, found.shape):
        return ""
    return f"{found.dtype} {found.shape} instead of {expected.dtype} {expected.shape}"


def finite_rows(*arrays: Array | None) -> Array:
    """``(N,)`` bool: which rows have neither NaN nor infinity in any of the arrays ``(N, ...)``; ``None`` is none."""
    given = [array for array in arrays if array is not None]
    rows = [np.isfinite(array).all(axis=tuple(range(1, array.ndim))) for array in given]
    found: Array = np.all(rows, axis=0)
    return found

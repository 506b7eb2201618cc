"""What is held out of each class: the one place that says how many, and which."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def held_out_counts(counts: Array, splits: int, share: float) -> Array:
    """How many of a class go into each split that is carved: at least one, and none where none would be left.

    Args:
        counts: ``(C,)`` integers, how many there are of each class.
        splits: How many splits are carved.
        share: Of each class for each of them.
    """
    found = np.maximum(1, np.rint(share * counts).astype(np.int64))
    return np.where(counts > splits * found, found, 0)


def stratified_split(strata: Array, order: Array, splits: int, share: float) -> tuple[Array, Array]:
    """Draw a share of every stratum for each of some splits: the first units of it, in an order, for the first split.

    Args:
        strata: ``(N,)`` integers, the class of each unit.
        order: ``(N,)``, the places of the units, the first drawn first.
        splits: How many splits are carved.
        share: Of each class for each of them.

    Returns:
        ``(N,)`` int64, the number of the split that a unit goes to, or -1; and the strata that are too small.
    """
    order = order[np.argsort(strata[order], kind="stable")]
    found, first, counts = np.unique(strata[order], return_index=True, return_counts=True)
    held_out = held_out_counts(counts, splits, share)
    size = np.repeat(held_out, counts)
    place = (np.arange(len(order)) - np.repeat(first, counts)) // np.maximum(1, size)
    drawn = np.empty(len(strata), np.int64)
    drawn[order] = np.where((size > 0) & (place < splits), place, -1)
    return drawn, found[held_out == 0]

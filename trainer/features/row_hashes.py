"""Rows that are equal bit by bit, found by a hash of each."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash

Array = np.ndarray[Any, Any]
# What is told of rows that leak, for who tells it in another way; and where to look.
LEAKED, _SEE = "of them to a row of an earlier split", ": see `headsmith inspect`"


def row_hashes(block: Array) -> Array:
    """A hash of every row of ``(N, D)``, ``(N,)`` uint64; equal for equal rows."""
    return np.array([xxhash.xxh3_64_intdigest(row.data) for row in np.ascontiguousarray(block)], np.uint64)


def copies_told(hashes: Array, splits: Array, labels: Array) -> list[str]:
    """What a person should know of rows that are equal, in at most one sentence.

    Args:
        hashes: ``(N,)``, see `row_hashes`; 0 for rows that count as different from all others.
        splits: ``(N,)`` numbers of the splits, train's the lowest.
        labels: ``(N,)`` the classes.
    """
    _, group, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    twice = (sizes[group] > 1) & (hashes != 0)
    if not twice.any():
        return []
    first = np.full(len(sizes), np.iinfo(np.int64).max)
    np.minimum.at(first, group, splits.astype(np.int64))
    lowest, highest = np.full(len(sizes), np.iinfo(np.int64).max), np.full(len(sizes), -1)
    np.minimum.at(lowest, group, labels)
    np.maximum.at(highest, group, labels)
    told = [f"{int(twice.sum()):,} rows are equal to another row"]
    if leaked := int((twice & (splits > first[group])).sum()):
        told.append(f"{leaked:,} {LEAKED}")
    if torn := int((twice & (lowest != highest)[group]).sum()):
        told.append(f"{torn:,} of them to a row of another class")
    return [f"{', '.join(told)}{_SEE}"]


def leaks_told(told: Iterable[str]) -> list[str]:
    """Of what `copies_told` says, the sentences about rows of several splits, without where to look."""
    return [one.removesuffix(_SEE) for one in told if LEAKED in one]

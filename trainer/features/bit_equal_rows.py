"""Rows that are equal bit by bit, found by a hash of each."""

from typing import Any

import numpy as np
import xxhash

from ...core.coded_warnings import CodedWarning

Array = np.ndarray[Any, Any]


def row_hashes(block: Array) -> Array:
    """A hash of every row of ``(N, D)``, ``(N,)`` uint64; equal for equal rows."""
    return np.array([xxhash.xxh3_64_intdigest(row.data) for row in np.ascontiguousarray(block)], np.uint64)


def equal_rows(hashes: Array, splits: Array, labels: Array) -> list[CodedWarning]:
    """The warning of rows that are equal, if there are any.

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
        told.append(f"{leaked:,} of them to a row of an earlier split")
    if torn := int((twice & (lowest != highest)[group]).sum()):
        told.append(f"{torn:,} of them to a row of another class")
    return [CodedWarning("leak" if leaked else "copies", f"{', '.join(told)}: see `headsmith inspect`")]

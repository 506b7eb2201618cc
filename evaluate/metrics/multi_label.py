"""Rows with several right classes."""

from collections.abc import Sequence

import numpy as np

from .row_scores import Array


def right_classes(sets: Sequence[Sequence[int]]) -> Array:
    """The right classes of N rows as a table, from lists such as those of ReaL (``real.json``).

    Args:
        sets: For each row its right classes, in any order; none for a row that shall be left out.

    Returns:
        ``(N, L)`` int64, L the most right classes of a row, at least 1; -1 where a row has fewer.
    """
    table = np.full((len(sets), max(map(len, sets), default=0) or 1), -1)
    for row, right in zip(table, sets, strict=True):
        row[: len(right)] = right
    return table


def best_of(logits: Array, sets: Array) -> Array:
    """The right class with the highest logit of each row, the lower index of equal ones.

    Args:
        logits: ``(N, C)``.
        sets: ``(N, L)`` integers, the right classes of each row, at least one; -1 where a row has fewer than L.

    Returns:
        ``(N,)`` int64.
    """
    ordered = np.sort(np.where(sets < 0, logits.shape[1], sets), axis=1)
    there = ordered < logits.shape[1]
    own = np.take_along_axis(logits, np.where(there, ordered, 0), axis=1)
    return np.take_along_axis(ordered, np.where(there, own, -np.inf).argmax(axis=1)[:, None], axis=1)[:, 0]

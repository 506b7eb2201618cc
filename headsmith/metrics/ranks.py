"""Ranks of labels, from which every top-k accuracy follows."""

from typing import Any

import numpy as np


def ranks(logits: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many classes come before the label of each row; equal scores go by class index, the lower first.

    Args:
        logits: ``(N, C)``.
        labels: ``(N,)`` integers in 0..C-1.

    Returns:
        ``(N,)`` int64. C for a row that holds NaN, whatever its label: such a row is wrong for every k.
    """
    own = np.take_along_axis(logits, labels[:, None], axis=1)
    found: np.ndarray[Any, np.dtype[np.int64]] = (logits > own).sum(axis=1, dtype=np.int64)
    shared = np.flatnonzero((logits == own).sum(axis=1, dtype=np.int32) > 1)
    earlier = np.arange(logits.shape[1]) < labels[shared, None]
    found[shared] += ((logits[shared] == own[shared]) & earlier).sum(axis=1)
    found[np.isnan(logits).any(axis=1)] = logits.shape[1]
    return found

"""Rows that say themselves which they are: the first feature is the row's number, and so is its label's remainder."""

from typing import NamedTuple

import numpy as np

CLASSES, WIDTH = 5, 6


class Planted(NamedTuple):
    features: np.ndarray
    labels: np.ndarray
    ids: list[str]


def planted(rows: int, first: int = 0, dtype: str = "float32") -> Planted:
    """Row ``first`` and on: feature 0 is the number, the label that modulo `CLASSES`, the id ``r<number>``."""
    numbers = np.arange(first, first + rows)
    features = np.random.default_rng(first).normal(size=(rows, WIDTH)).astype(dtype)
    features[:, 0] = numbers
    return Planted(features, numbers % CLASSES, [f"r{number}" for number in numbers])


def check_aligned(found, *, own_ids: bool = False) -> set[int]:
    """Every row's feature, label and (with ``own_ids``) id name the same row; returns the numbers, each once."""
    numbers: list[int] = []
    for split in found.splits:
        features, labels = found.arrays(split)
        rows = features[:, 0].long()
        names = np.array(found.class_names).astype(int)[labels.numpy()]
        assert (rows.numpy() % CLASSES == names).all()
        if own_ids:
            assert found.ids(split) == [f"r{number}" for number in rows.tolist()]
        numbers += rows.tolist()
    assert len(set(numbers)) == len(numbers)
    return set(numbers)

"""What the page needs to compare any two classifiers class by class: who had which row right, in bits."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ...core.printable import printable
from ..metrics.row_scores import Array


@dataclass(frozen=True)
class ClassDifference:
    """Two classifiers on the rows of one class; the fields of `statistics.PairedDifference` mean the same."""

    name: str
    n: int
    first: int
    second: int
    only_first: int
    only_second: int

    @property
    def difference(self) -> float:
        """Accuracy of the first minus that of the second."""
        return (self.only_first - self.only_second) / self.n


def class_differences(labels: Array, first: Array, second: Array, class_names: Sequence[str]) -> list[ClassDifference]:
    """Compare two classifiers on each class that has rows.

    Args:
        labels: ``(N,)`` integers, the right class.
        first: ``(N,)`` bool, whether the first has the row right.
        second: ``(N,)`` bool, the same of the second.
        class_names: C names.

    Returns:
        The largest differences in either direction first, then those of more discordant rows, then by class.
    """
    rows = (np.ones_like(first), first, second, first & ~second, second & ~first)
    counts = [np.bincount(labels[chosen], minlength=len(class_names)) for chosen in rows]
    found = [
        ClassDifference(name, *(int(count) for count in line))
        for name, *line in zip(class_names, *counts, strict=True)
        if line[0]
    ]
    return sorted(found, key=lambda one: (-abs(one.difference), -(one.only_first + one.only_second)))


class PackedAnswers(TypedDict):
    """Who had which row right, as JSON.

    Attributes:
        classes: The names of the classes with rows, with control characters made visible.
        n: Their rows.
        correct: For each classifier its rows in the order of classes, eight a byte, the first in the lowest bit, as
            base64.
    """

    classes: list[str]
    n: list[int]
    correct: dict[str, str]


def packed(labels: Array, correct: Mapping[str, Array], class_names: Sequence[str]) -> PackedAnswers:
    """What the page's script compares: a bit a row and classifier.

    Args:
        labels: ``(N,)`` integers, the right class.
        correct: For each classifier ``(N,)`` bool, whether it has the row right.
        class_names: C names.

    Returns:
        Them.
    """
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=len(class_names))
    bits = {name: np.packbits(rows[order], bitorder="little").tobytes() for name, rows in correct.items()}
    return {
        "classes": [printable(name) for name, n in zip(class_names, counts, strict=True) if n],
        "n": counts[counts > 0].tolist(),
        "correct": {name: base64.b64encode(data).decode("ascii") for name, data in bits.items()},
    }

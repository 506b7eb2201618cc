"""What splits share and what they lack, told by ids and labels alone: no look at the features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.counted import counted
from ....core.listed import listed
from ..columns import Columns
from ..manifest import FeatureSetManifest

FEW = 2


@dataclass(frozen=True)
class Unanswered:
    """Rows of a split whose classes have no training row.

    Attributes:
        rows: How many.
        share: Of the split's rows.
        classes: The names of these classes.
    """

    rows: int
    share: float
    classes: list[str]

    def __str__(self) -> str:
        are = "is" if self.rows == 1 else "are"
        return (
            f"{counted(self.rows, 'row')} ({self.share:.2%}) {are} of classes without a training row, which no "
            f"head can answer: {listed(self.classes)}"
        )


def shared_ids(columns: Mapping[str, Columns]) -> list[str]:
    """Ids in more than one split, in the order of text. A million training rows take tens of milliseconds."""
    by_size = sorted((found.names for found in columns.values()), key=len)
    shared = [large.filter(pc.is_in(large, value_set=small)) for small, large in combinations(by_size, 2)]
    return sorted(pa.concat_arrays([pa.array([], pa.string()), *shared]).unique().to_pylist())


def unanswered(columns: Mapping[str, Columns], class_names: Sequence[str]) -> dict[str, Unanswered]:
    """By split, the rows of classes that the training split lacks; only splits that have some."""
    counts = {split: _counts(found, len(class_names)) for split, found in columns.items()}
    trained = counts.get("train", np.zeros(len(class_names), np.int64)) > 0
    found = {}
    for split, rows in counts.items():
        lost = np.flatnonzero((rows > 0) & ~trained)
        if lost.size:
            count = int(rows[lost].sum())
            found[split] = Unanswered(
                count, count / len(columns[split].labels), [class_names[label] for label in lost.tolist()]
            )
    return found


def few_rows(train: Columns, manifest: FeatureSetManifest) -> str:
    """Which classes have one or two training rows, in words, the rarest first; nothing where none has.

    Args:
        train: The training split.
        manifest: Of the feature set.
    """
    class_names, views = manifest.class_names, len(manifest.views or [""])
    counts = -(-_counts(train, len(class_names)) // views)
    rare = [label for label in np.argsort(counts, kind="stable").tolist() if 0 < counts[label] <= FEW]
    if not rare:
        return ""
    names, rows = (
        listed([f"{class_names[label]} ({counts[label]})" for label in rare]),
        "images" if views > 1 else "rows",
    )
    return f"{len(rare)} of {len(class_names)} classes have one or two training {rows}: {names}"


def _counts(columns: Columns, classes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """``(C,)`` rows of each class; labels outside of the classes are left out."""
    labels = columns.labels
    return np.bincount(labels[(labels >= 0) & (labels < classes)], minlength=classes)

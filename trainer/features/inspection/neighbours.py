"""Whether features and labels belong together at all: nearest neighbours should share a class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.neighbors import KNeighborsClassifier

from ..columns import Columns
from ..images.samples import SEED

Array = np.ndarray[Any, Any]
NEAREST = 5
TRAIN_ROWS, HELD_OUT_ROWS = 20_000, 2_000
SAMPLE_BYTES = 64 << 20
ENOUGH = 50
WORKING_MEMORY = 64  # MiB of distances at a time


@dataclass(frozen=True)
class Neighbours:
    """Accuracy of the nearest training rows (cosine) on held-out rows, a sample of both.

    Attributes:
        accuracy: Share of held-out rows whose class they name.
        chance: The share of the largest class among those rows.
        n: Held-out rows.
        train_rows: Training rows.
        split: Where the held-out rows are from.
        k: How many neighbours vote, nearer ones with more weight.
    """

    accuracy: float
    chance: float
    n: int
    train_rows: int
    split: str
    k: int

    @property
    def doubtful(self) -> bool:
        """Whether enough rows were tried and the neighbours knew no more than the largest class."""
        return self.n >= ENOUGH and self.accuracy <= self.chance


def sanity(columns: Mapping[str, Columns], usable: Mapping[str, Array], classes: int) -> Neighbours | None:
    """Try nearest neighbours on a seeded sample.

    Args:
        columns: The rows by split.
        usable: By split, ``(N,)`` bool, the rows with finite features.
        classes: How many there are.

    Returns:
        The outcome; ``None`` without usable training or held-out rows.
    """
    split = next((name for name in ("val", "test") if name in columns), None)
    if split is None or "train" not in columns:
        return None
    rng = np.random.default_rng(SEED)
    rows, labels = _sample(columns["train"], usable["train"], TRAIN_ROWS, classes, rng)
    held_out, expected = _sample(columns[split], usable[split], HELD_OUT_ROWS, classes, rng)
    if not len(rows) or not len(held_out):
        return None
    k = min(NEAREST, len(rows))
    model = KNeighborsClassifier(k, metric="cosine", algorithm="brute", weights="distance").fit(rows, labels)
    with sklearn.config_context(working_memory=WORKING_MEMORY):
        accuracy = float((model.predict(held_out) == expected).mean())
    chance = float(np.bincount(expected).max() / len(expected))
    return Neighbours(accuracy, chance, len(held_out), len(rows), split, k)


def _sample(columns: Columns, usable: Array, most: int, classes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    fits = np.flatnonzero(usable & (columns.labels >= 0) & (columns.labels < classes))
    most = min(most, SAMPLE_BYTES // (4 * columns.features.shape[1]), len(fits))
    chosen = np.sort(rng.choice(fits, most, replace=False)) if most else fits[:0]
    return columns.features[chosen].astype(np.float32), columns.labels[chosen]

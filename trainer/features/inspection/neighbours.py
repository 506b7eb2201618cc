"""Whether features and labels belong together at all: nearest neighbours should share a class."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..columns import Columns
from ..images.samples import SEED
from .guessing import Guessing, compare

Array = np.ndarray[Any, Any]
NEAREST = 5
TRAIN_ROWS, HELD_OUT_ROWS = 20_000, 2_000
SAMPLE_BYTES = 32 << 20
WORKING_MEMORY = 64  # MiB of distances at a time


@dataclass(frozen=True)
class Neighbours:
    """Accuracy of the nearest training rows (cosine) on held-out rows, a sample of both.

    Attributes:
        accuracy: Share of held-out rows whose class they name.
        chance: Share that guessing would name, with each class as often as they name it.
        p_value: Of so many hits or more by guessing.
        n: Held-out rows.
        train_rows: Training rows.
        split: Where the held-out rows are from.
        k: How many neighbours vote, nearer ones with more weight.
        means: Accuracy of the nearest class means, columns scaled: tried where the neighbours seem to guess, which
            they also do where angles between rows say little.
        doubtful: Whether the rows are enough to tell, and neither is better than guessing.
    """

    accuracy: float
    chance: float
    p_value: float
    n: int
    train_rows: int
    split: str
    k: int
    means: float | None
    doubtful: bool


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
    train = _sample(columns["train"], usable["train"], TRAIN_ROWS, classes, rng)
    held_out = _sample(columns[split], usable[split], HELD_OUT_ROWS, classes, rng)
    if not len(train[0]) or not len(held_out[0]):
        return None
    k = min(NEAREST, len(train[0]))
    near = _tried(KNeighborsClassifier(k, metric="cosine", algorithm="brute", weights="distance"), train, held_out)
    means = None
    if near.likely and np.ptp(train[0], axis=0).any():
        means = _tried(make_pipeline(StandardScaler(copy=False), NearestCentroid()), train, held_out)
    return Neighbours(
        accuracy=near.accuracy,
        chance=near.chance,
        p_value=near.p_value,
        n=len(held_out[0]),
        train_rows=len(train[0]),
        split=split,
        k=k,
        means=None if means is None else means.accuracy,
        doubtful=near.likely and (means is None or means.likely),
    )


def _tried(model: Any, train: tuple[Array, Array], held_out: tuple[Array, Array]) -> Guessing:
    rows, labels = train
    # Where classes have one row or columns are constant, means are still means, whatever deviations there are not.
    with sklearn.config_context(working_memory=WORKING_MEMORY), warnings.catch_warnings(action="ignore"):
        return compare(model.fit(rows, labels).predict(held_out[0]), held_out[1], np.unique(labels))


def _sample(columns: Columns, usable: Array, most: int, classes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    fits = np.flatnonzero(usable & (columns.labels >= 0) & (columns.labels < classes))
    most = min(most, SAMPLE_BYTES // (4 * columns.features.shape[1]), len(fits))
    chosen = np.sort(rng.choice(fits, most, replace=False)) if most else fits[:0]
    return columns.features[chosen].astype(np.float32), columns.labels[chosen]

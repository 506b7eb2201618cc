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
from ..images.carving import SEED
from .chance_level import LIFT, Guessing, compare

Array = np.ndarray[Any, Any]
Rows = tuple[Array, Array]
NEAREST = 5
TRAIN_ROWS, HELD_OUT_ROWS = 20_000, 2_000
SAMPLE_BYTES = 32 << 20
WORKING_MEMORY = 64  # MiB of distances at a time


@dataclass(frozen=True)
class Neighbours:
    """Accuracy of the nearest training rows (cosine) on the rows of a held-out split, a sample of both.

    Attributes:
        accuracy: Share of held-out rows whose class they name.
        shuffled: Share that the same answers would name in random order, which is what they do where labels and rows do
            not belong together.
        p_value: Of so many hits or more by answers in random order.
        n: Held-out rows.
        train_rows: Training rows.
        split: Where the held-out rows are from.
        k: How many neighbours vote, nearer ones with more weight.
        means: Accuracy of the nearest class means, columns scaled: tried where the neighbours seem to guess, which
            they also do where angles between rows say little.
        at_chance: Whether the rows are enough to tell, and neither is better than guessing. The better another split
            fares, the fewer rows are enough.
        below: The split whose rows are surely named more than twice as well, or ``None``.
    """

    accuracy: float
    shuffled: float
    p_value: float
    n: int
    train_rows: int
    split: str
    k: int
    means: float | None
    at_chance: bool
    below: str | None


def sanity(columns: Mapping[str, Columns], usable: Mapping[str, Array], classes: int) -> dict[str, Neighbours]:
    """Try nearest neighbours on a seeded sample of each held-out split.

    Args:
        columns: The rows by split.
        usable: By split, ``(N,)`` bool, the rows with finite features.
        classes: How many there are.

    Returns:
        The outcome by split; nothing of splits without usable rows, or where train has none.
    """
    if "train" not in columns:
        return {}
    rng = np.random.default_rng(SEED)
    drawn = {
        split: _draw(columns[split], usable[split], most, classes, rng)
        for split, most in {"train": TRAIN_ROWS, "val": HELD_OUT_ROWS, "test": HELD_OUT_ROWS}.items()
        if split in columns
    }
    held_out = {split: (columns[split], rows) for split, rows in drawn.items() if split != "train" and len(rows)}
    if not len(drawn["train"]) or not held_out:
        return {}
    train = _rows(columns["train"], drawn["train"])
    k = min(NEAREST, len(train[0]))
    near = _tried(KNeighborsClassifier(k, metric="cosine", algorithm="brute", weights="distance"), train, held_out)
    peers = {split: other for split, other in (("val", "test"), ("test", "val")) if near.keys() >= {split, other}}
    half = {split: near[peers[split]].lift / 2 if split in peers else 0.0 for split in near}
    guessed = {split: held_out[split] for split in near if near[split].likely(max(LIFT, half[split]))}
    means = dict[str, Guessing]()
    if guessed and np.ptp(train[0], axis=0).any():
        means = _tried(make_pipeline(StandardScaler(copy=False), NearestCentroid()), train, guessed)
    return {
        split: Neighbours(
            accuracy=named.accuracy,
            shuffled=named.chance,
            p_value=named.p_value,
            n=named.n,
            train_rows=len(train[0]),
            split=split,
            k=k,
            means=means[split].accuracy if split in means else None,
            at_chance=split in guessed and (split not in means or means[split].likely(max(LIFT, half[split]))),
            below=peers[split] if half[split] and named.below(half[split]) else None,
        )
        for split, named in near.items()
    }


def _tried(model: Any, train: Rows, held_out: Mapping[str, tuple[Columns, Array]]) -> dict[str, Guessing]:
    """By split, how well a model of the training rows names the classes of the rows that were drawn."""
    known, found = np.unique(train[1]), {}
    # Where classes have one row or columns are constant, means are still means, whatever deviations there are not.
    with sklearn.config_context(working_memory=WORKING_MEMORY), warnings.catch_warnings(action="ignore"):
        model.fit(*train)
        for split, drawn in held_out.items():
            rows, labels = _rows(*drawn)
            found[split] = compare(model.predict(rows), labels, known)
    return found


def _draw(columns: Columns, usable: Array, most: int, classes: int, rng: np.random.Generator) -> Array:
    """The numbers of some rows that can be used, in order."""
    fits = np.flatnonzero(usable & (columns.labels >= 0) & (columns.labels < classes))
    most = min(most, SAMPLE_BYTES // (4 * columns.features.shape[1]), len(fits))
    return np.sort(rng.choice(fits, most, replace=False)) if most else fits[:0]


def _rows(columns: Columns, drawn: Array) -> Rows:
    return columns.features[drawn].astype(np.float32), columns.labels[drawn]

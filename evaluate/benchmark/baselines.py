"""What needs no training: the nearest neighbours among the features of the winner, and the most frequent class."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.proportions import Share, wilson
from ...trainer.features.feature_set import FeatureSet

NEIGHBOURS = (1, 3, 5, 10, 20)
MOST_ROWS = 20_000
MAJORITY = "majority class"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Baseline:
    """A classifier that was not trained.

    Attributes:
        name: Its name.
        val_top1: On validation.
        top1: On the test split.
        ids: The test images.
        correct: Whether each of them is right.
        notes: How it was made.
    """

    name: str
    val_top1: Share
    top1: Share
    ids: list[str]
    correct: Array
    notes: list[str]


def baselines(features: FeatureSet, of: str) -> list[Baseline]:
    """The k nearest neighbours by cosine, k chosen on validation, and the most frequent training class.

    The neighbours are scikit-learn's ``KNeighborsClassifier``, among at most 20,000 training rows drawn at random.

    Args:
        features: A feature set with all three splits.
        of: Whose features they are.
    """
    arrays = {split: features.arrays(split) for split in ("train", "val", "test")}
    rows = {split: (x.float().numpy(), y.numpy()) for split, (x, y) in arrays.items()}
    return [_nearest(rows, features, of), _majority(rows, features)]


def _nearest(rows: dict[str, tuple[Array, Array]], features: FeatureSet, of: str) -> Baseline:
    from sklearn.neighbors import KNeighborsClassifier

    x, y = rows["train"]
    drawn = np.sort(np.random.default_rng(0).permutation(len(x))[:MOST_ROWS])
    fitted = {
        k: KNeighborsClassifier(k, metric="cosine", algorithm="brute").fit(x[drawn], y[drawn])
        for k in NEIGHBOURS
        if k <= len(drawn)
    }
    hits = {k: int((model.predict(rows["val"][0]) == rows["val"][1]).sum()) for k, model in fitted.items()}
    best = max(hits, key=lambda k: (hits[k], -k))
    tried = ", ".join(map(str, hits))
    notes = [f"nearest by cosine among {len(drawn):,} training images; {best} of {tried} was best on validation"]
    right = fitted[best].predict(rows["test"][0]) == rows["test"][1]
    return _baseline(f"{best} nearest on {of}", hits[best], right, rows, features, notes)


def _majority(rows: dict[str, tuple[Array, Array]], features: FeatureSet) -> Baseline:
    named = int(np.bincount(rows["train"][1]).argmax())
    notes = [f"always {features.class_names[named]!r}, the most frequent class of the training images"]
    hits, right = int((rows["val"][1] == named).sum()), rows["test"][1] == named
    return _baseline(MAJORITY, hits, right, rows, features, notes)


def _baseline(
    name: str, hits: int, right: Array, rows: dict[str, tuple[Array, Array]], features: FeatureSet, notes: list[str]
) -> Baseline:
    return Baseline(
        name,
        wilson(hits, len(rows["val"][1])),
        wilson(int(right.sum()), len(right)),
        features.ids("test"),
        right,
        notes,
    )

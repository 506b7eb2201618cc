"""A feature set as one small file that `headsmith import` reads."""

from pathlib import Path

import numpy as np

from headsmith import FeatureSet
from headsmith.core.files import new_file


def write_compact(features: FeatureSet, path: Path, *, most_bytes: int = 60 * 2**20) -> None:
    """Write ``SPLIT_features`` (float16), ``SPLIT_labels`` and, beside it as ``.txt``, the class names.

    Args:
        features: A feature set with train, val and test.
        path: The ``.npz`` to write.
        most_bytes: What the features may take before compression. Above it each class keeps its first so many rows in
            each split, at most as many as fit.
    """
    arrays = {name: features.arrays(name) for name in ("train", "val", "test")}
    labels = {name: part[1].numpy() for name, part in arrays.items()}
    place = {name: _place_in_class(part) for name, part in labels.items()}
    row_bytes = 2 * features.feature_dim
    limit = max(int(part.max()) for part in place.values()) + 1
    while limit > 1 and row_bytes * sum(int((part < limit).sum()) for part in place.values()) > most_bytes:
        limit -= 1
    found = {}
    for name, (rows, _) in arrays.items():
        kept = place[name] < limit
        found[f"{name}_features"] = rows.numpy()[kept].astype(np.float16)
        found[f"{name}_labels"] = labels[name][kept].astype(np.int32)
    with new_file(path) as file, file.open("wb") as stream:
        np.savez_compressed(stream, **found)
    with new_file(path.with_suffix(".txt")) as file:
        file.write_text("".join(f"{name}\n" for name in features.class_names), encoding="utf-8")


def _place_in_class(labels: np.ndarray) -> np.ndarray:
    """The how-manieth row of its class each row is, from 0."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    starts = np.searchsorted(ordered, ordered)
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels)) - starts
    return place

"""Feature sets in memory, with splits in the order of their rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from headsmith.trainer import FeatureSet
from headsmith.trainer.features.columns import Columns
from headsmith.trainer.features.extraction.request import Request
from headsmith.trainer.features.images.samples import ImageSource
from headsmith.trainer.features.manifest import FeatureSetManifest, FeatureStatistics
from headsmith.trainer.features.split_checksums import rows_sha256


def feature_set(features, labels, classes: int, splits=(0.6, 0.2)) -> FeatureSet:
    """Rows in their order: the first 60 % train, then 20 % val, then test."""
    cuts = np.cumsum([int(share * len(labels)) for share in splits])
    ids = np.array([f"{row:04d}" for row in range(len(labels))])
    columns = {
        name: Columns(pa.array(ids[rows]), labels[rows].astype(np.int64), features[rows].astype(np.float32))
        for name, rows in zip(("train", "val", "test"), np.split(np.arange(len(labels)), cuts), strict=True)
    }
    return FeatureSet(Path("digits"), made_up_manifest(columns, classes), columns)


def made_up_manifest(columns, classes: int) -> FeatureSetManifest:
    """A manifest of rows that no backbone computed."""
    return FeatureSetManifest(
        fingerprint="digits",
        request=Request(backbone=None, weights=None, split_rule="by hand", dtype="float32"),
        backbone=None,
        source=ImageSource("digits"),
        class_names=[str(name) for name in range(classes)],
        splits={name: len(split.ids) for name, split in columns.items()},
        split_rule="by hand",
        warnings=[],
        rows_sha256={name: rows_sha256(split.names, split.labels) for name, split in columns.items()},
        feature_dim=columns["train"].features.shape[1],
        dtype="float32",
        unreadable=[],
        statistics=FeatureStatistics(0.0, 1.0, 1.0),
        versions={},
        created="2026-01-01T00:00:00+00:00",
    )


def small(load) -> FeatureSet:
    """A set of scikit-learn's with three classes, shuffled."""
    features, labels = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return feature_set(features[order], labels[order], classes=3)

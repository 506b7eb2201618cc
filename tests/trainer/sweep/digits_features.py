"""scikit-learn's digits as a feature set: 10 classes, 64 features; 60 % train, 20 % val, 20 % test."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits
from split_features import made_up_manifest

from headsmith.trainer import FeatureSet
from headsmith.trainer.features.columns import Columns


def digits_with(splits: tuple[str, ...]) -> FeatureSet:
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))  # the file goes writer by writer
    parts = np.split(order, [1078, 1437])
    columns = {
        name: Columns(
            pa.array([f"{row:04d}" for row in rows]),
            labels[rows].astype(np.int64),
            (pixels[rows] / 16).astype(np.float32),
        )
        for name, rows in zip(splits, parts, strict=False)
    }
    return FeatureSet(Path("digits"), made_up_manifest(columns, 10), columns)

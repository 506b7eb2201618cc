"""How accurate the defaults are on small sets, beside scikit-learn's logistic regression on the same split.

python -m benchmarks.small_sets [--features demo/100/features] [--settings epochs=100 patience=10]
"""

import argparse
import statistics
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from headsmith.trainer import FeatureSet, TrainConfig
from headsmith.trainer.fitting import fit_heads

Splits = Mapping[str, tuple[Tensor, Tensor]]
SEEDS = range(3)
LOSSES = ("softmax", "neuralsort")


def arrays() -> Iterator[tuple[str, Any, Any]]:
    """Sets that need no download: name, features, labels."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    common = {"n_clusters_per_class": 1, "class_sep": 2.5, "random_state": 0}
    yield "like faces", *make_classification(400, 256, n_informative=60, n_redundant=100, n_classes=40, **common)
    yield "synthetic", *make_classification(4000, 100, n_informative=40, n_classes=20, **common)


def divided(features: Any, labels: Any, seed: int) -> Splits:
    """70 % train, 15 % val, 15 % test."""
    train, rest = train_test_split(np.arange(len(labels)), test_size=0.3, stratify=labels, random_state=seed)
    val, test = train_test_split(rest, test_size=0.5, random_state=seed)
    rows = {"train": train, "val": val, "test": test}
    return {
        name: (torch.from_numpy(features[part]).float(), torch.from_numpy(labels[part]).long())
        for name, part in rows.items()
    }


def peer(rows: Splits, *, scaled: bool) -> float:
    """Test accuracy of scikit-learn's logistic regression."""
    model = LogisticRegression(max_iter=3000)
    model = make_pipeline(StandardScaler(), model) if scaled else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unscaled columns: it says that it did not converge
        model.fit(*(part.numpy() for part in rows["train"]))
    return float(model.score(*(part.numpy() for part in rows["test"])))


def ours(rows: Splits, **settings: Any) -> float:
    """Test accuracy of a head."""
    [fitted] = fit_heads(rows, int(rows["train"][1].max()) + 1, [TrainConfig(device="cpu", **settings)])
    return float(fitted.test.top1)


def sets(features: list[str]) -> Iterator[tuple[str, list[Splits]]]:
    """Every set, divided by every seed; feature sets have splits of their own."""
    for name, values, labels in arrays():
        yield name, [divided(values, labels, seed) for seed in SEEDS]
    for path in features:
        found = FeatureSet.load(path)
        splits = {name: found.arrays(name) for name in ("train", "val", "test")}
        splits = {name: (rows.float(), labels) for name, (rows, labels) in splits.items()}
        yield path, [splits for _ in SEEDS]
        for length in (1, 0.1):
            short = {
                name: (length * torch.nn.functional.normalize(rows), labels) for name, (rows, labels) in splits.items()
            }
            yield f"{path}, of length {length}", [short for _ in SEEDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="*", default=[])
    parser.add_argument("--settings", nargs="*", default=[])
    arguments = parser.parse_args()
    settings = {name: yaml.safe_load(value) for name, value in (one.split("=") for one in arguments.settings)}
    table = Table(title=f"Test top-1 in %, mean of {len(SEEDS)} seeds; {settings or 'defaults'}")
    for column in ("set", "rows", *LOSSES, "scikit-learn", "on scaled columns"):
        table.add_column(column, justify="left" if column == "set" else "right")
    for name, divisions in sets(arguments.features):
        found = [
            [ours(rows, loss=loss, seed=seed, **settings) for seed, rows in zip(SEEDS, divisions, strict=True)]
            for loss in LOSSES
        ]
        found += [[peer(rows, scaled=scaled) for rows in divisions] for scaled in (False, True)]
        table.add_row(
            name, f"{len(divisions[0]['train'][1]):,}", *(f"{100 * statistics.fmean(values):.1f}" for values in found)
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

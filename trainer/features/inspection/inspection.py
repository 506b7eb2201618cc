"""What is in a feature set, and what of it would spoil a training. Sets that `FeatureSet.load` refuses are told too."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..columns import Columns, read_columns
from ..feature_set import FeatureSet, read_manifest
from ..images.samples import SPLITS
from .judging import judge
from .magnitudes import limits
from .neighbours import Neighbours, sanity
from .row_scan import Found, Scan, scan
from .splits import Unanswered, shared_ids, unanswered
from .written import as_written

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SplitReport:
    """One split.

    Attributes:
        rows: How many.
        histogram: Class name to its rows, in the order of the classes.
        nan: Rows with a NaN.
        infinite: Rows with an infinite feature.
        absurd: Rows with a finite feature that is over a million times the usual ones of its column.
        zero: Rows that are zero throughout.
        duplicates: Rows that are equal to an earlier one of the split, zero rows aside.
        unlabelled: Rows whose label is outside of the class names.
        norm: Smallest, mean and largest Euclidean norm of the finite rows; ``None`` where there is none.
        as_written: Whether the features are those that were written; ``None`` where they are in no folder.
    """

    rows: int
    histogram: dict[str, int]
    nan: Found
    infinite: Found
    absurd: Found
    zero: Found
    duplicates: Found
    unlabelled: Found
    norm: tuple[float, float, float] | None
    as_written: bool | None


@dataclass(frozen=True)
class Inspection:
    """A feature set, examined.

    Attributes:
        path: Its folder.
        classes: How many class names it has.
        feature_dim: D.
        dtype: ``float16`` or ``float32``.
        backbone: The backbone's name; ``None`` for imported features of an unknown one.
        split_rule: How the rows came to be divided.
        splits: The splits.
        empty_classes: Classes without a row.
        leaked_ids: Ids in more than one split.
        leaked_rows: By split, rows that are equal to one of an earlier split, zero rows aside.
        unanswered: By split, rows of classes that have no training row.
        neighbours: How far nearest neighbours agree with the labels; ``None`` where that cannot be tried.
        problems: What would spoil a training or its measurement.
        warnings: What a person should know.
    """

    path: str
    classes: int
    feature_dim: int
    dtype: str
    backbone: str | None
    split_rule: str
    splits: dict[str, SplitReport]
    empty_classes: list[str]
    leaked_ids: Found
    leaked_rows: dict[str, Found]
    unanswered: dict[str, Unanswered]
    neighbours: Neighbours | None
    problems: list[str]
    warnings: list[str]


def inspect_features(features: str | Path | FeatureSet) -> Inspection:
    """Read a feature set once, some rows at a time, and describe it.

    Args:
        features: A feature set, its folder, or a file that `FeatureSet.load` reads.

    Raises:
        InputError: It is no feature set, or its files cannot be read at all.
    """
    path, manifest, columns = _opened(features)
    class_names = manifest["class_names"]
    beyond = limits(columns.get("train", next(iter(columns.values()))).features)
    scans = {split: scan(found, split, beyond) for split, found in columns.items()}
    reports = {
        split: _report(
            scans[split], columns[split], class_names, as_written(path, split, manifest, scans[split].digest)
        )
        for split in columns
    }
    shared = shared_ids(columns)
    found = Inspection(
        path=str(path),
        classes=len(class_names),
        feature_dim=int(manifest["feature_dim"]),
        dtype=str(manifest["dtype"]),
        backbone=manifest["backbone"] and manifest["backbone"]["spec"],
        split_rule=str(manifest.get("split_rule", "")),
        splits=reports,
        empty_classes=[name for name in class_names if not any(one.histogram[name] for one in reports.values())],
        leaked_ids=Found(len(shared), [], shared[: Found.MOST]),
        leaked_rows=_leaked_rows(columns, scans),
        unanswered=unanswered(columns, class_names),
        neighbours=sanity(columns, {split: one.finite for split, one in scans.items()}, len(class_names)),
        problems=[],
        warnings=[],
    )
    problems, warnings = judge(found, manifest, columns)
    return replace(found, problems=problems, warnings=warnings)


def _opened(features: str | Path | FeatureSet) -> tuple[Path, Mapping[str, Any], Mapping[str, Columns]]:
    """Path, manifest and columns; of a folder also those that `FeatureSet.load` refuses."""
    if not isinstance(features, FeatureSet) and Path(features).is_file():
        features = FeatureSet.load(features)
    if isinstance(features, FeatureSet):
        return features.path, features.manifest, features.columns
    path = Path(features)
    manifest = read_manifest(path)
    return path, manifest, {split: read_columns(path / split) for split in manifest["splits"]}


def _report(found: Scan, columns: Columns, class_names: list[str], written: bool | None) -> SplitReport:
    labels = columns.labels
    known = (labels >= 0) & (labels < len(class_names))
    first = np.unique(found.hashes, return_index=True)[1]
    repeated = np.ones(len(labels), bool)
    repeated[first] = False
    return SplitReport(
        rows=len(labels),
        histogram=dict(zip(class_names, np.bincount(labels[known], minlength=len(class_names)).tolist(), strict=True)),
        nan=Found.of(found.nan, columns),
        infinite=Found.of(found.infinite, columns),
        absurd=Found.of(found.absurd, columns),
        zero=Found.of(found.zero, columns),
        duplicates=Found.of(repeated & ~found.zero, columns),
        unlabelled=Found.of(~known, columns),
        norm=found.norm,
        as_written=written,
    )


def _leaked_rows(columns: Mapping[str, Columns], scans: Mapping[str, Scan]) -> dict[str, Found]:
    seen: Array = np.empty(0, np.uint64)
    leaked = {}
    for split in sorted(scans, key=_order):
        found = scans[split]
        leaked[split] = Found.of(np.isin(found.hashes, seen) & ~found.zero, columns[split])
        seen = np.union1d(seen, found.hashes)
    return {split: found for split, found in leaked.items() if found.count}


def _order(split: str) -> int:
    return SPLITS.index(split) if split in SPLITS else len(SPLITS)

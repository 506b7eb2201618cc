"""What is in a feature set, and what of it would spoil a training. Sets that `FeatureSet.load` refuses are told too."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..columns import Columns, read_columns
from ..feature_set import read_manifest, rows_sha256
from ..images.samples import SPLITS, listed
from .neighbours import Neighbours, sanity
from .row_scan import Found, Scan, scan

Array = np.ndarray[Any, Any]
LEAK_SHARE = 0.01


@dataclass(frozen=True)
class SplitReport:
    """One split.

    Attributes:
        rows: How many.
        histogram: Class name to its rows, in the order of the classes.
        nan: Rows with a NaN.
        infinite: Rows with an infinite feature.
        zero: Rows that are zero throughout.
        duplicates: Rows that are equal to an earlier one of the split, zero rows aside.
        unlabelled: Rows whose label is outside of the class names.
        norm: Smallest, mean and largest Euclidean norm of the finite rows; ``None`` where there is none.
    """

    rows: int
    histogram: dict[str, int]
    nan: Found
    infinite: Found
    zero: Found
    duplicates: Found
    unlabelled: Found
    norm: tuple[float, float, float] | None


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
    neighbours: Neighbours | None
    problems: list[str]
    warnings: list[str]


def inspect_features(features: str | Path) -> Inspection:
    """Read a feature set once, some rows at a time, and describe it.

    Args:
        features: Its folder.

    Raises:
        InputError: It is no feature set, or its files cannot be read at all.
    """
    path = Path(features)
    manifest = read_manifest(path)
    columns = {split: read_columns(path / split) for split in manifest["splits"]}
    classes = len(manifest["class_names"])
    scans = {split: scan(found, split) for split, found in columns.items()}
    reports = {split: _report(scans[split], columns[split], manifest["class_names"]) for split in columns}
    empty = [name for name in manifest["class_names"] if not any(report.histogram[name] for report in reports.values())]
    leaked_ids, leaked_rows = _leaked_ids(columns), _leaked_rows(columns, scans)
    neighbours = sanity(columns, {split: found.finite for split, found in scans.items()}, classes)
    problems, warnings = _judge(manifest, columns, reports, leaked_ids, leaked_rows)
    if empty:
        warnings.append(f"{len(empty)} classes have no row: {listed(empty)}")
    if neighbours is not None and neighbours.doubtful:
        warnings.append(
            f"the {neighbours.k} nearest rows name the class of {neighbours.accuracy:.1%} of {neighbours.n} rows, no "
            f"more than always naming the largest class ({neighbours.chance:.1%}): are these the labels of these rows?"
        )
    return Inspection(
        path=str(path),
        classes=classes,
        feature_dim=int(manifest["feature_dim"]),
        dtype=str(manifest["dtype"]),
        backbone=manifest["backbone"] and manifest["backbone"]["spec"],
        split_rule=str(manifest.get("split_rule", "")),
        splits=reports,
        empty_classes=empty,
        leaked_ids=leaked_ids,
        leaked_rows=leaked_rows,
        neighbours=neighbours,
        problems=problems,
        warnings=[*manifest.get("warnings", []), *warnings],
    )


def _report(found: Scan, columns: Columns, class_names: list[str]) -> SplitReport:
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
        zero=Found.of(found.zero, columns),
        duplicates=Found.of(repeated & ~found.zero, columns),
        unlabelled=Found.of(~known, columns),
        norm=found.norm,
    )


def _leaked_ids(columns: Mapping[str, Columns]) -> Found:
    sets = [np.unique(found.names.to_numpy(zero_copy_only=False).astype(object)) for found in columns.values()]
    names, counts = np.unique(np.concatenate(sets), return_counts=True)
    leaked = names[counts > 1].tolist()
    return Found(len(leaked), [], leaked[: Found.MOST])


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


def _judge(
    manifest: Mapping[str, Any],
    columns: Mapping[str, Columns],
    reports: Mapping[str, SplitReport],
    leaked_ids: Found,
    leaked_rows: Mapping[str, Found],
) -> tuple[list[str], list[str]]:
    """Problems and warnings, in words."""
    problems, warnings = list[str](), list[str]()
    for split, report in reports.items():
        shape, expected = columns[split].features.shape, (manifest["splits"][split], manifest["feature_dim"])
        if shape != expected:
            problems.append(f"{split}: features {shape}, the manifest says {expected}")
        if rows_sha256(columns[split].names, columns[split].labels) != manifest["rows_sha256"].get(split):
            problems.append(f"{split}: ids and labels are not those that were written, or in another order")
        for found, what in (
            (report.nan, "NaN features"),
            (report.infinite, "infinite features"),
            (report.unlabelled, "no label among the classes"),
        ):
            if found.count:
                problems.append(f"{split}: {found.count} rows have {what}: {found}")
        for found, what in ((report.zero, "are zero throughout"), (report.duplicates, "repeat an earlier one")):
            if found.count:
                warnings.append(f"{split}: {found.count} rows ({found.count / report.rows:.2%}) {what}: {found}")
    if leaked_ids.count:
        problems.append(f"{leaked_ids.count} ids stand in more than one split: {listed(leaked_ids.ids)}")
    for split, found in leaked_rows.items():
        share = found.count / reports[split].rows
        text = f"{split}: {found.count} rows ({share:.2%}) are equal to rows of an earlier split: {found}"
        (problems if share > LEAK_SHARE else warnings).append(text)
    if "train" not in reports or sum(map(bool, reports["train"].histogram.values())) < 2:
        problems.append("train: fewer than two classes have rows")
    return problems, warnings

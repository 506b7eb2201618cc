"""What is in a feature set, and what of it would spoil a training. Sets that `FeatureSet.load` refuses are told too."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ....core.arguments import typed
from ..columns import Columns, read_columns
from ..copies import whole_classes
from ..feature_set import FeatureSet
from ..manifest import FeatureSetManifest, read_manifest
from .changed_since_written import as_written
from .equal_rows import same_rows
from .neighbours import Neighbours, sanity
from .outliers import limits
from .report import Inspection, SplitReport
from .row_scan import Found, Scan, scan
from .rules import judge
from .split_coverage import shared_ids, unanswered

Array = np.ndarray[Any, Any]


@typed
def inspect_features(features: str | Path | FeatureSet) -> Inspection:
    """Read a feature set once, some rows at a time, and describe it.

    Args:
        features: A feature set, its folder, or a file that `FeatureSet.load` reads.

    Raises:
        InputError: It is no feature set, or its files cannot be read at all, or a file holds labels or columns that
            cannot be imported.
    """
    path, manifest, columns = _opened(features)
    class_names = manifest.class_names
    beyond = limits(columns.get("train", next(iter(columns.values()))).features)
    scans = {split: scan(found, split, beyond) for split, found in columns.items()}
    near = sanity(columns, {split: one.finite for split, one in scans.items()}, len(class_names))
    written = {split: as_written(path, split, manifest, columns[split], one.digest) for split, one in scans.items()}
    usable = {split: one.finite & ~one.zero for split, one in scans.items()}
    repeated, leaked = same_rows(columns, {split: one.hashes for split, one in scans.items()}, usable)
    reports = {
        split: _report(scans[split], repeated[split], columns[split], class_names, written[split], near.get(split))
        for split in columns
    }
    shared = shared_ids(columns)
    found = Inspection(
        path=str(path),
        classes=len(class_names),
        feature_dim=manifest.feature_dim,
        dtype=manifest.dtype,
        backbone=None if manifest.backbone is None else manifest.backbone.spec,
        split_rule=manifest.split_rule,
        splits=reports,
        empty_classes=[name for name in class_names if not any(one.histogram[name] for one in reports.values())],
        leaked_ids=Found(len(shared), [], shared[: Found.MOST]),
        leaked_rows={split: Found.of(mark, columns[split]) for split, mark in leaked.items() if mark.any()},
        leaked_classes={
            split: {
                class_names[label]: rows for label, rows in whole_classes(columns[split].labels, mark, len(class_names))
            }
            for split, mark in leaked.items()
            if mark.any()
        },
        unanswered=unanswered(columns, class_names),
        neighbours=near.get("val", near.get("test")),
        problems=[],
        warnings=[],
    )
    problems, warnings = judge(found, manifest, columns)
    return replace(found, problems=problems, warnings=warnings)


def _opened(features: str | Path | FeatureSet) -> tuple[Path, FeatureSetManifest, Mapping[str, Columns]]:
    """Path, manifest and columns, also of rows that `FeatureSet.load` refuses."""
    if isinstance(features, FeatureSet):
        return features.path, features.manifest, features.columns
    path = Path(features)
    if path.is_file():
        from ..importing.builder import FeatureSetBuilder  # and with it datasets, for which folders need not wait

        return path, *FeatureSetBuilder.of_file(path).keep(unusable=True)
    manifest = read_manifest(path)
    return path, manifest, {split: read_columns(path / split) for split in manifest.splits}


def _report(
    found: Scan,
    repeated: Array,
    columns: Columns,
    class_names: list[str],
    written: bool | None,
    near: Neighbours | None,
) -> SplitReport:
    labels = columns.labels
    known = (labels >= 0) & (labels < len(class_names))
    return SplitReport(
        rows=len(labels),
        histogram=dict(zip(class_names, np.bincount(labels[known], minlength=len(class_names)).tolist(), strict=True)),
        nan=Found.of(found.nan, columns),
        infinite=Found.of(found.infinite, columns),
        absurd=Found.of(found.absurd, columns),
        zero=Found.of(found.zero, columns),
        duplicates=Found.of(repeated, columns),
        unlabelled=Found.of(~known, columns),
        norm=found.norm,
        typical_norm=found.typical_norm,
        as_written=written,
        neighbours=near,
    )

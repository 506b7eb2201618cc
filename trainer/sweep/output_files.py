"""The files of a finished sweep."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ...core.environment import describe_device, versions
from ...core.files import sha256_file
from ...core.records import to_json
from ..features.feature_set import FeatureSet
from ..fitting import METRICS
from ..run_writer import write_run
from .bank_grouping import Trained
from .comparison import SweepComparison
from .grid import SweepPlan
from .model_selection import Setting
from .plot import draw_sweep
from .result import BEST, HEADS, PICTURE, SUMMARY
from .sweep_record import (
    RECORD,
    PairedTests,
    SweepRecord,
    SweptFeatures,
    UsedPreset,
    Winner,
    write_sweep_record,
)
from .sweep_warnings import sweep_warnings
from .tables import head_rows, setting_rows, varying, write_csv


def write_best(folder: Path, feature_set: FeatureSet, comparison: SweepComparison) -> None:
    """Write the winner as a run folder."""
    fitted = comparison.winner.fitted()
    with TemporaryDirectory() as temporary:
        metrics = Path(temporary) / METRICS
        metrics.write_text("".join(json.dumps(to_json(epoch)) + "\n" for epoch in fitted.history), encoding="utf-8")
        write_run(folder / BEST, feature_set, fitted, metrics)


def write_sweep(
    folder: Path,
    plan: SweepPlan,
    feature_set: FeatureSet,
    heads: Sequence[Trained],
    settings: Sequence[Setting],
    comparison: SweepComparison,
    seconds: float,
) -> None:
    """Write tables, picture and record into a folder that holds the best run already."""
    by_head, by_setting = head_rows(heads, comparison), setting_rows(settings, comparison)
    write_csv(folder / HEADS, by_head)
    write_csv(folder / SUMMARY, by_setting)
    axes = varying([row.settings for row in by_head])
    winner, best = comparison.winner, comparison.winner.setting.best
    select = to_json(best.config.select)
    draw_sweep(by_head, axes, select, [head.file for head in heads].index(best.file), folder / PICTURE)
    record = SweepRecord(
        features=SweptFeatures(str(feature_set.path), feature_set.fingerprint),
        request=plan.request(feature_set.fingerprint),
        preset=None if plan.preset is None else UsedPreset(plan.preset.name, plan.preset.source),
        select=select,
        heads=len(heads),
        banks=len({head.bank for head in heads}),
        axes=axes,
        winner=Winner(winner.name, best.config, comparison.train, best.val, winner.test_of(best)),
        baseline=comparison.baseline,
        groups=[row for row in by_setting if row.chosen],
        paired=PairedTests(
            "test" if comparison.tested else None, {one.name: one.tests for one in comparison.groups if one.tests}
        ),
        warnings=sweep_warnings(heads, settings, comparison, plan.trials, feature_set),
        settings=by_setting,
        seconds=round(seconds, 3),
        device=describe_device(torch.device(heads[0].device)),
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files_sha256={name: sha256_file(folder / name) for name in (HEADS, SUMMARY, PICTURE, f"{BEST}/run.json")},
    )
    write_sweep_record(folder / RECORD, record)

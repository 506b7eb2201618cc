"""The files of a finished sweep."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ...core.environment import describe_device, versions
from ...core.files import sha256_file, write_json
from ..features.feature_set import FeatureSet
from ..fitting import METRICS
from ..training import write_run
from .bank_grouping import Trained
from .comparison import SweepComparison
from .grid import Plan, spelt_out
from .model_selection import Setting
from .plot import draw_sweep
from .result import BEST, FORMAT, FORMAT_VERSION, HEADS, PICTURE, RECORD, SUMMARY
from .tables import head_rows, setting_rows, varying, write_csv
from .warnings import findings_of


def write_best(folder: Path, feature_set: FeatureSet, contest: SweepComparison) -> None:
    """Write the winner as a run folder."""
    fitted = contest.winner.fitted()
    with TemporaryDirectory() as temporary:
        metrics = Path(temporary) / METRICS
        metrics.write_text("".join(json.dumps(row) + "\n" for row in fitted.history), encoding="utf-8")
        write_run(folder / BEST, feature_set, fitted, metrics)


def write_sweep(
    folder: Path,
    plan: Plan,
    feature_set: FeatureSet,
    heads: Sequence[Trained],
    settings: Sequence[Setting],
    contest: SweepComparison,
    seconds: float,
) -> None:
    """Write tables, picture and record into a folder that holds the best run already."""
    by_head, by_setting = head_rows(heads, contest), setting_rows(settings, contest)
    write_csv(folder / HEADS, by_head)
    write_csv(folder / SUMMARY, by_setting)
    axes = varying(by_head)
    select = spelt_out(heads[0].config)["select"]
    winner = [head.file for head in heads].index(contest.winner.setting.best.file)
    draw_sweep(by_head, axes, select, winner, folder / PICTURE)
    files = (HEADS, SUMMARY, PICTURE, f"{BEST}/run.json")
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "features": {"path": str(feature_set.path), "fingerprint": feature_set.fingerprint},
        "request": plan.request(feature_set.fingerprint),
        "preset": None if plan.preset is None else {"name": plan.preset.name, "source": plan.preset.source},
        "select": select,
        "heads": len(heads),
        "banks": len({head.bank for head in heads}),
        "axes": axes,
        "winner": _winner(contest),
        "baseline": contest.baseline,
        "contenders": [row for row in by_setting if row["chosen"]],
        "paired": {
            "split": "test" if contest.tested else None,
            "tests": {one.name: one.tests for one in contest.contenders if one.tests},
        },
        "findings": findings_of(heads, settings, contest, plan.points, feature_set),
        "settings": by_setting,
        "seconds": round(seconds, 3),
        "device": describe_device(torch.device(heads[0].config.device)),
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "files_sha256": {name: sha256_file(folder / name) for name in files},
    }
    write_json(folder / RECORD, record)


def _winner(contest: SweepComparison) -> dict[str, Any]:
    winner = contest.winner
    head = winner.setting.best
    return {
        "contender": winner.name,
        "config": spelt_out(head.config),
        "train": contest.train,
        "val": head.val,
        "test": winner.test_of(head),
    }

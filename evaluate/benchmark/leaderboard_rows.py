"""The rows of the leaderboard: what was trained, what was measured, and how they compare with the winner."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...export.bundle.manifest import MANIFEST
from ...trainer.features.feature_set import FeatureSet
from ...trainer.run import Run
from ...trainer.sweep.result import BEST
from ..comparison import compare
from ..zoo.manifest import ZooRow
from .baselines import Baseline, baselines
from .benchmark_record import ALSO, BASELINE, BenchmarkRow
from .decision import Comparison, choose, compared, excess
from .measure_files import RESULTS, Measured
from .options import ALL, BenchmarkOptions
from .stages import BUNDLES, FEATURES, SWEEPS, exported
from .trained_rows import FAILED, TrainedRow
from .verdict import doubts, sentence

FLIPS = "flips"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Table:
    """The leaderboard.

    Attributes:
        rows: The best on the test split first; those without figures last.
        bounds: By name what costs at most, in the units of `headsmith.evaluate.benchmark.decision.UNITS`.
        winner: The name of the row to deploy.
        sentence: What to deploy, why, and how sure that is.
        warnings: What makes the choice doubtful.
    """

    rows: list[BenchmarkRow]
    bounds: dict[str, float]
    winner: str | None
    sentence: str
    warnings: list[CodedWarning]


def table_of(
    out: Path, trained: Sequence[TrainedRow], also: Sequence[ZooRow], measured: Measured, options: BenchmarkOptions
) -> Table:
    """Put the leaderboard together.

    Args:
        out: The benchmark's folder.
        trained: What became of each backbone.
        also: Files of others.
        measured: What the test split says.
        options: Of the benchmark.
    """
    bounds = {name: value for name in ("latency", "size", "memory") if (value := getattr(options, name)) is not None}
    rows = [_own(row, measured, bounds) for row in trained] + [_other(row, measured, bounds) for row in also]
    winner = choose(rows, bounds)
    if winner is None:
        return Table(_ordered(rows), bounds, None, "nothing could be measured", [])
    chosen = next(row for row in trained if row.name == winner.name)
    untrained = baselines(FeatureSet.load(out / FEATURES / chosen.features), winner.name)
    rows += [_untrained(one) for one in untrained]
    others = compared(winner.name, _correct(rows, measured, untrained))
    rows = [_beside(row, winner.name, others.get(row.name)) for row in rows]
    rows = [_with_bundle(row, out, trained, options) for row in rows]
    winner = next(row for row in rows if row.name == winner.name)
    _list_flips(out, winner.name, rows, options)
    return Table(_ordered(rows), bounds, winner.name, sentence(winner, rows, bounds), doubts(winner, rows, bounds))


def _own(row: TrainedRow, measured: Measured, bounds: dict[str, float]) -> BenchmarkRow:
    """The row of a backbone."""
    result = measured.of(row.name)
    why = row.reason or ("" if result else measured.reason(row.name) or "not measured")
    found = BenchmarkRow(
        name=row.name,
        state=row.state if row.reason or result else FAILED,
        reason=f"{row.stage}: {why}" if row.stage else why,
        backbone=row.backbone,
        image_size=row.image_size,
        sweep=row.sweep,
        precision=row.precision,
        loss=row.loss,
        feature_dim=row.feature_dim,
        val_top1=row.val_top1,
        val_top5=row.val_top5,
        promise=row.promise,
        seconds=row.seconds,
        notes=row.notes,
    )
    return _figured(found, measured, bounds)


def _other(row: ZooRow, measured: Measured, bounds: dict[str, float]) -> BenchmarkRow:
    """The row of a file of others."""
    why = "" if measured.of(row.id) else measured.reason(row.id) or "not measured"
    found = BenchmarkRow(name=row.id, kind=ALSO, state=FAILED if why else "done", reason=why, backbone=row.source)
    return _figured(found, measured, bounds)


def _figured(row: BenchmarkRow, measured: Measured, bounds: dict[str, float]) -> BenchmarkRow:
    """A row with what was measured of it."""
    result = measured.of(row.name)
    if result is None:
        return row
    setup, speed = result.setup, result.speed
    found = replace(
        row,
        image_size=setup.image_size,
        crop_pct=setup.crop_pct,
        interpolation=setup.interpolation,
        parameters=setup.parameters,
        top1=result.top1,
        top5=result.top5,
        latency=speed.latency,
        images_per_second=speed.images_per_second,
        moved=None if result.beside_cpu is None else result.beside_cpu.largest,
        memory_mb=None if speed.memory_bytes is None else speed.memory_bytes / 1e6,
        file_mb=setup.bytes / 1e6,
        providers=measured.elsewhere(row.name),
        warnings=result.warnings,
        notes=list(dict.fromkeys([*row.notes, *result.notes])),
    )
    return replace(found, within=excess(found, bounds) <= 1)


def _untrained(one: Baseline) -> BenchmarkRow:
    return BenchmarkRow(name=one.name, kind=BASELINE, val_top1=one.val_top1, top1=one.top1, notes=one.notes)


def _correct(
    rows: Sequence[BenchmarkRow], measured: Measured, untrained: Sequence[Baseline]
) -> dict[str, tuple[Sequence[str], Array]]:
    found: dict[str, tuple[Sequence[str], Array]] = {one.name: (one.ids, one.correct) for one in untrained}
    for row in rows:
        if (result := measured.of(row.name)) is not None:
            found[row.name] = measured.correct(result)
    return found


def _beside(row: BenchmarkRow, winner: str, other: Comparison | None) -> BenchmarkRow:
    if row.name == winner:
        return replace(row, tied=True, p=1.0, difference=0.0)
    if other is None:
        return row
    return replace(row, tied=other.tied, p=other.p, difference=other.difference.difference)


def _with_bundle(
    row: BenchmarkRow, out: Path, trained: Sequence[TrainedRow], options: BenchmarkOptions
) -> BenchmarkRow:
    """A row with the bundle that is kept; one that was removed, when another row won, is exported again."""
    own = next((one for one in trained if one.name == row.name), None)
    path = out / BUNDLES / row.name
    if own is None or row.top1 is None or not (row.tied or options.keep == ALL):
        return row
    if not (path / MANIFEST).is_file():
        best = Run.load(out / SWEEPS / own.trained / BEST)
        exported(best, path, row.precision, options.max_drop, own.batch_size or options.batch_size)
    return replace(row, bundle=f"{BUNDLES}/{row.name}")


def _list_flips(out: Path, winner: str, rows: Sequence[BenchmarkRow], options: BenchmarkOptions) -> None:
    """A CSV file for each file of others: the images to which it and the winner give different first answers.

    Those of an older winner, or of files that are named no more, go.
    """
    shutil.rmtree(out / FLIPS, ignore_errors=True)
    for row in rows:
        if row.kind == ALSO and row.top1 is not None:
            name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in row.name)
            compare(winner, row.name, results=out / RESULTS / options.provider[0].name, out=out / FLIPS / f"{name}.csv")


def _ordered(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """The best first, baselines after the others, then what has no figures."""

    def place(row: BenchmarkRow) -> tuple[Any, ...]:
        return row.top1 is None, row.kind == BASELINE, -(row.top1.value if row.top1 else 0), row.name

    return sorted(rows, key=place)

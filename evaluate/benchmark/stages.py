"""One backbone from images to proved files: extraction, sweep and exports, each found again where it was done."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ...core.cpus import usable_cpus
from ...core.full_disk import full_disk_behind
from ...core.memory_shortage import halving, memory_note
from ...core.printable import printable
from ...export import Bundle
from ...export.bundle.manifest import MANIFEST
from ...export.errors import GateError
from ...export.exporting import export
from ...export.options import ExportOptions
from ...metrics.proportions import Share, wilson
from ...trainer.features.extraction.embedding import BeyondRangeError
from ...trainer.features.extraction.extraction import extract
from ...trainer.features.feature_set import FeatureSet
from ...trainer.features.images.image_set import ImageSet
from ...trainer.features.manifest import MANIFEST as FEATURES_RECORD
from ...trainer.features.manifest import read_manifest
from ...trainer.run import Run
from ...trainer.sweep import Sweep, sweep
from ...trainer.sweep.grid import read_plan
from ...trainer.sweep.result import BEST
from ...trainer.sweep.sweep_record import RECORD
from ...trainer.unused_settings import without_unused
from ..zoo.failure import failure
from .options import BenchmarkOptions
from .plan import Unit
from .trained_rows import DONE, FAILED, PRUNED, TrainedRow

FEATURES, SWEEPS, BUNDLES = "features", "sweeps", "bundles"
T = TypeVar("T")


class _StageError(Exception):
    """A stage failed; its cause says why."""


@dataclass
class Stages:
    """The way of one backbone.

    Attributes:
        out: The benchmark's folder.
        images: What it is trained and measured on.
        unit: Backbone and sweep.
        options: Of the benchmark.
        overwrite: Replace what lies there of another backbone of this name.
        seconds: What each stage took.
        batch_size: Images a forward pass; halved where memory does not do.
        promise: The score of the budget.
    """

    out: Path
    images: ImageSet
    unit: Unit
    options: BenchmarkOptions
    overwrite: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    batch_size: int = 0
    promise: float | None = None

    def rows(self, keys: dict[str, str]) -> Iterator[TrainedRow]:
        """A row for each precision, as soon as it is known.

        Args:
            keys: Of the rows, by precision.

        Raises:
            OSError: The disk is full, which would fail all others too.
        """
        self.batch_size = self.options.batch_size
        try:
            features = self._stage("extract", self.extract)
            found = self._stage("sweep", lambda: self.sweep(features))
        except _StageError as error:
            for precision, key in keys.items():
                yield self._failed(precision, key, error)
            return
        for precision, key in keys.items():
            self.seconds.pop("export", None)
            try:
                bundle = self._stage("export", partial(self.export, found, precision))
            except _StageError as error:
                yield self._failed(precision, key, error)
                continue
            yield self._done(precision, key, features, found, bundle)

    def extract(self) -> FeatureSet:
        """The features, in smaller batches where memory does not do, and as float32 where they are too large."""
        path = self.out / FEATURES / self.unit.base
        kept = not self.overwrite and (path / FEATURES_RECORD).is_file()
        dtype = read_manifest(path).dtype if kept else "float16"
        try:
            return self._halving(partial(self._extract, path, dtype, self.overwrite))
        except BeyondRangeError:
            return self._halving(partial(self._extract, path, "float32", True))

    def _extract(self, path: Path, dtype: str, overwrite: bool, batch_size: int) -> FeatureSet:
        entry = self.unit.entry
        return extract(
            self.images,
            out=path,
            backbone=entry.backbone,
            checkpoint=entry.checkpoint,
            image_size=entry.image_size,
            preprocessing=entry.preprocessing,
            layer=entry.layer,
            drop_background=entry.drop_background,
            batch_size=batch_size,
            workers=max(1, usable_cpus() // (self.options.jobs or 1)),
            device=self.options.device,
            dtype=dtype,
            overwrite=overwrite,
        )

    def sweep(self, features: FeatureSet) -> Sweep:
        """The sweep on these features, or the one that is there already."""
        path, device = self.out / SWEEPS / self.unit.name, self.options.device
        config, preset = self.unit.config, self.unit.preset
        if (path / RECORD).is_file():
            there = Sweep.load(path)
            if there.record.request == read_plan(config, preset, device).request(features.fingerprint):
                return there
        return sweep(features, out=path, config=config, preset=preset, device=device, overwrite=True)

    def export(self, found: Sweep, precision: str) -> Bundle:
        """The bundle of the winner, or the one that is there already."""
        path = self.out / BUNDLES / self.unit.named(precision)
        return self._halving(
            lambda batch_size: exported(found.best, path, precision, self.options.max_drop, batch_size, self.images)
        )

    def _halving(self, attempt: Callable[[int], T]) -> T:
        """Try with smaller and smaller batches while memory is what lacks; what comes after goes on with these."""
        found, self.batch_size = halving(self.batch_size, attempt)
        return found

    def _stage(self, name: str, work: Callable[[], T]) -> T:
        with _failing(name):
            start = time.perf_counter()
            found = work()
            self.seconds[name] = round(time.perf_counter() - start, 3)
            return found

    def _failed(self, precision: str, key: str, error: _StageError) -> TrainedRow:
        cause, (stage,) = error.__cause__, error.args
        reason = failure(cause, self.unit.entry.backbone) if isinstance(cause, Exception) else str(cause)
        if isinstance(cause, GateError) and cause.head_alone:
            run = self.out / SWEEPS / self.unit.name / BEST
            command = f"`headsmith export {run} --out BUNDLE --precision {precision} --fp32-head`"
            reason = printable(f"{cause.finding}; {command} keeps the head in float32, and --also BUNDLE measures it")
        return self._row(precision, key, state=FAILED, reason=reason, stage=stage)

    def _done(self, precision: str, key: str, features: FeatureSet, found: Sweep, bundle: Bundle) -> TrainedRow:
        winner, lower = found.record.winner, bundle.manifest.precision
        val = winner.val
        if lower is None:
            top1: Share = wilson(val.hits, val.n)
            top5 = None if val.top5 is None else wilson(round(val.top5 * val.n), val.n)
        else:
            top1, top5 = lower.lower.top1, lower.lower.top5
        read = without_unused(winner.config)
        notes = memory_note(self.batch_size, self.options.batch_size)
        notes += ["features beyond float16 are stored as float32"] * (features.manifest.dtype == "float32")
        return self._row(
            precision,
            key,
            state=DONE,
            reason="",
            feature_dim=features.feature_dim,
            loss=winner.config.loss,
            settings={"head": read.head, "learning_rate": read.learning_rate, "weight_decay": read.weight_decay},
            val_top1=top1,
            val_top5=top5,
            notes=notes,
        )

    def _row(self, precision: str, key: str, **found: Any) -> TrainedRow:
        return replace(
            _begun(self.unit, precision, key),
            seconds=dict(self.seconds),
            batch_size=self.batch_size,
            promise=self.promise,
            **found,
        )


def pruned(unit: Unit, precision: str, key: str, reason: str, score: float | None) -> TrainedRow:
    """The row of a backbone that the budget leaves out."""
    return replace(_begun(unit, precision, key), state=PRUNED, reason=reason, promise=score)


def _begun(unit: Unit, precision: str, key: str) -> TrainedRow:
    return TrainedRow(
        key=key,
        name=unit.named(precision),
        backbone=unit.entry.backbone,
        image_size=unit.entry.image_size,
        sweep=unit.sweep,
        features=unit.base,
        trained=unit.name,
        precision=precision,
        state=FAILED,
        reason="not done",
    )


def exported(
    run: Run, path: Path, precision: str, max_drop: float, batch_size: int, images: ImageSet | None = None
) -> Bundle:
    """The bundle of a run at a precision, or the one that is at its place already; see `held_out_images` for images."""
    if (path / MANIFEST).is_file():
        there = Bundle.load(path)
        gate = there.manifest.precision
        if there.manifest.head.sha256 == run.record.head_sha256 and (gate is None or gate.max_drop == max_drop):
            return there
    options = ExportOptions(precision=precision, max_drop=max_drop, batch_size=batch_size, overwrite=True)
    return export(run, path, options, images)


@contextmanager
def _failing(stage: str) -> Iterator[None]:
    """Let whatever a library raises fail this backbone alone; a full disk would fail all."""
    try:
        yield
    except Exception as error:
        if full_disk_behind(error) is not None:
            raise
        raise _StageError(stage) from error

"""Who does what: every process takes backbones that nobody else has, until all rows are known."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from filelock import FileLock, Timeout

from ...core.files import make_folder
from ...trainer.features.extraction.workers import drop
from ...trainer.features.images.image_set import ImageSet
from .budget import Promise
from .options import BenchmarkOptions
from .plan import Unit
from .stages import Stages, pruned
from .trained_rows import DONE, ROWS, TrainedRow, read_row, read_rows, row_path, write_row

_POLL = 0.2


@dataclass(frozen=True)
class Work:
    """What all processes of one benchmark share.

    Attributes:
        out: The benchmark's folder.
        images: What heads are trained and measured on.
        units: Backbones and sweeps, in the order in which they are done.
        options: Of the benchmark.
        began: When the command began, in seconds since 1970: what failed before is tried again.
        keys: Of all rows, by name.
        promises: Where there is a budget, what each backbone promises, by the name of its features.
    """

    out: Path
    images: ImageSet
    units: Sequence[Unit]
    options: BenchmarkOptions
    began: float
    keys: Mapping[str, str]
    promises: dict[str, Promise] = field(default_factory=dict)

    def do(self, told: Callable[[TrainedRow], None]) -> None:
        """Make the rows that are not there and that no other process makes, until all are there.

        What a process had taken that was killed is taken over; see `headsmith.trainer.features.extraction.workers`.

        Args:
            told: Called with each row that is new, whoever made it.
        """
        make_folder(self.out / ROWS)
        waiting = {unit: missing for unit in self.units if (missing := self.missing(unit))}
        while waiting:
            for unit, missing in list(waiting.items()):
                if not self.missing(unit):  # another process made them
                    for precision in missing:
                        told(read_row(row_path(self.out, unit.named(precision))))
                    del waiting[unit]
                elif self._done(unit, told):
                    del waiting[unit]
            if waiting:
                time.sleep(_POLL)

    def missing(self, unit: Unit) -> dict[str, str]:
        """The keys of the rows that are not known, by precision."""
        keys = {precision: self.keys[unit.named(precision)] for precision in unit.precisions}
        return {precision: key for precision, key in keys.items() if not self._is_known(unit.named(precision), key)}

    def _is_known(self, name: str, key: str) -> bool:
        path = row_path(self.out, name)
        if not path.is_file():
            return False
        row = read_row(path)
        return row.key == key and (row.state == DONE or path.stat().st_mtime >= self.began)

    def _done(self, unit: Unit, told: Callable[[TrainedRow], None]) -> bool:
        """Do a unit, unless another process has it."""
        lease = FileLock(self.out / ROWS / f".{unit.base}.lock", timeout=0)
        try:
            lease.acquire()
        except Timeout:
            return False
        try:
            missing = self.missing(unit)
            promised = self.promises.get(unit.base)
            if promised is not None and (why := self._too_long(unit, promised)):
                for precision, key in missing.items():
                    write_row(self.out, row := pruned(unit, precision, key, why, promised.score))
                    told(row)
                return True
            others = any(row_path(self.out, unit.named(precision)).is_file() for precision in missing)
            stages = Stages(self.out, self.images, unit, self.options, overwrite=others)
            stages.promise = None if promised is None else promised.score
            for row in stages.rows(missing):
                write_row(self.out, row)
                told(row)
        finally:
            drop(lease)
        return True

    def _too_long(self, unit: Unit, promised: Promise) -> str:
        """Why a backbone does not fit what is left of the budget, in words; empty where it does.

        It is taken to need its time an image for all of them, in a part of the machine where several share it, and for
        the rest the median of what was done.
        """
        done = [row for row in read_rows(self.out) if row.state == DONE]
        if self.options.budget is None or promised.score is None or not done:
            return ""
        left = self.options.budget - (time.time() - self.began)
        rest = median(sum(row.seconds.get(stage, 0.0) for stage in ("sweep", "export")) for row in done)
        needed = promised.seconds * len(self.images) * (self.options.jobs or 1) + rest * len(unit.precisions)
        if needed <= left:
            return ""
        return f"would take about {needed:,.0f} s, and {max(left, 0):,.0f} s of the budget were left"

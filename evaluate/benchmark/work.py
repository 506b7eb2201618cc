"""Who does what: every process takes backbones that nobody else has, until all rows are known."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ...core.files import make_folder
from ...trainer.features.extraction.workers import drop
from ...trainer.features.images.image_set import ImageSet
from .options import BenchmarkOptions
from .plan import Unit, key_of
from .rows import DONE, ROWS, TrainedRow, read_row, row_path, write_row
from .stages import Stages

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
    """

    out: Path
    images: ImageSet
    units: Sequence[Unit]
    options: BenchmarkOptions
    began: float

    def do(self, told: Callable[[TrainedRow], None]) -> None:
        """Make the rows that are not there and that no other process makes, until all are there.

        What a process had taken that was killed is taken over; see `headsmith.trainer.features.extraction.workers`.

        Args:
            told: Called with each row that was made here.
        """
        make_folder(self.out / ROWS)
        waiting = list(self.units)
        while waiting:
            waiting = [unit for unit in waiting if not self._done(unit, told)]
            if waiting:
                time.sleep(_POLL)

    def missing(self, unit: Unit) -> dict[str, str]:
        """The keys of the rows that are not known, by precision."""
        keys = {
            precision: key_of(unit, precision, self.images.fingerprint, self.options.max_drop)
            for precision in unit.precisions
        }
        return {precision: key for precision, key in keys.items() if not self._is_known(unit.named(precision), key)}

    def _is_known(self, name: str, key: str) -> bool:
        path = row_path(self.out, name)
        if not path.is_file():
            return False
        row = read_row(path)
        return row.key == key and (row.state == DONE or path.stat().st_mtime >= self.began)

    def _done(self, unit: Unit, told: Callable[[TrainedRow], None]) -> bool:
        """Do a unit, unless another process has it."""
        if not self.missing(unit):
            return True
        lease = FileLock(self.out / ROWS / f".{unit.base}.lock", timeout=0)
        try:
            lease.acquire()
        except Timeout:
            return False
        try:
            missing = self.missing(unit)
            others = any(row_path(self.out, unit.named(precision)).is_file() for precision in missing)
            for row in Stages(self.out, self.images, unit, self.options, overwrite=others).rows(missing):
                write_row(self.out, row)
                told(row)
        finally:
            drop(lease)
        return True

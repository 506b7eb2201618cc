"""A finished sweep on disk."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from ...core.arguments import typed
from ...core.coded_warnings import CodedWarning, are_worthless
from ...core.errors import DamagedFileError, InputError
from ...core.files import sha256_file
from ..run import Run
from .sweep_record import RECORD, SettingRow, SweepRecord, read_sweep_record

HEADS, SUMMARY, PICTURE, BEST = "sweep.csv", "summary.csv", "sweep.png", "best"


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    The folder holds ``sweep.csv`` (a row a head), ``summary.csv`` (a row a setting, means over seeds), ``sweep.png``,
    ``sweep.json``, and ``best``, the run folder of the winner.

    Attributes:
        path: The folder.
        record: What ``sweep.json`` holds.
    """

    path: Path
    record: SweepRecord

    def __repr__(self) -> str:
        """Its trials, the winner and its accuracy."""
        winner = self.record.winner
        scores = ", ".join(
            f"{split} top-1 {100 * found.top1:.1f} %"
            for split, found in (("val", winner.val), ("test", winner.test))
            if found is not None
        )
        return f"Sweep({str(self.path)!r}: {self.record.heads:,} heads, winner {winner.group}, {scores})"

    @cached_property
    def best(self) -> Run:
        """The run of the head that validation chose; of several seeds, that of the best one."""
        return Run.load(self.path / BEST)

    @property
    def settings(self) -> list[SettingRow]:
        """The rows of ``summary.csv``, the winner first, then the best on validation; accuracies in per cent."""
        return self.record.settings

    @property
    def warnings(self) -> list[CodedWarning]:
        """What makes the result doubtful."""
        return self.record.warnings

    @property
    def worthless(self) -> bool:
        """Whether the winner is no better than guesses, or its loss ran away."""
        return are_worthless(self.record.warnings)

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a finished sweep.

        Raises:
            InputError: A part is missing or damaged.
            DamagedFileError: A table, the picture or the record of the winner is not what the sweep wrote.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such sweep; `headsmith sweep` makes one")
        record = read_sweep_record(path / RECORD)
        for name, sha256 in record.files_sha256.items():
            file = path / name
            if file.is_file() and sha256_file(file) != sha256:
                raise DamagedFileError(f"{file}: not what the sweep wrote (hash differs): edited? sweep again")
        return cls(path, record)

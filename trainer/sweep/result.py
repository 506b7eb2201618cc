"""A finished sweep on disk."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ...core.errors import InputError
from ...core.files import read_json
from ..run import Run

RECORD, HEADS, SUMMARY, PICTURE, BEST = "sweep.json", "sweep.csv", "summary.csv", "sweep.png", "best"
FORMAT = "headsmith.sweep"


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    The folder holds ``sweep.csv`` (a row a head), ``summary.csv`` (a row a setting, means over seeds), ``sweep.png``,
    ``sweep.json``, and ``best``, the run folder of the winner.

    Attributes:
        path: The folder.
        record: What ``sweep.json`` holds: ``contenders``, the winner first, ``settings``, ``findings``, ...
    """

    path: Path
    record: dict[str, Any]

    @cached_property
    def best(self) -> Run:
        """The run of the head that validation chose; of several seeds, that of the best one."""
        return Run.load(self.path / BEST)

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The rows of ``summary.csv``, the best setting first; accuracies in per cent."""
        return list(self.record["settings"])

    @property
    def findings(self) -> list[dict[str, str]]:
        """What makes the result doubtful, each a ``code`` and a ``message``."""
        return list(self.record["findings"])

    @property
    def worthless(self) -> bool:
        """Whether the winner is no better than guesses."""
        return any(finding["code"] == "chance" for finding in self.findings)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a finished sweep.

        Raises:
            InputError: A part is missing or damaged.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such sweep; `headsmith sweep` makes one")
        record = read_json(path / RECORD)
        if record.get("format") != FORMAT:
            raise InputError(f"{path / RECORD}: `format` is {record.get('format')!r}, expected {FORMAT!r}")
        return cls(path, record)

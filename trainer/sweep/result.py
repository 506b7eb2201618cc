"""A finished sweep on disk."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.records import read_versioned
from ..run import Run

RECORD, HEADS, SUMMARY, PICTURE, BEST = "sweep.json", "sweep.csv", "summary.csv", "sweep.png", "best"
FORMAT, FORMAT_VERSION = "headsmith.sweep", 1


class _Scores(TypedDict):
    """Empty where there is no such split."""

    top1: NotRequired[float]


class _Winner(TypedDict):
    contender: str
    val: _Scores
    test: _Scores


class _Record(TypedDict):
    """What is read of a record later; it may hold more."""

    heads: int
    banks: int
    seconds: float
    device: str
    baseline: str | None
    axes: list[str]
    winner: _Winner
    contenders: list[dict[str, Any]]
    settings: list[dict[str, Any]]
    findings: list[dict[str, str]]


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

    def __repr__(self) -> str:
        """Its trials, the winner and its accuracy."""
        winner = self.record["winner"]
        scores = ", ".join(
            f"{split} top-1 {100 * winner[split]['top1']:.1f} %" for split in ("val", "test") if winner[split]
        )
        return f"Sweep({str(self.path)!r}: {self.record['heads']:,} heads, winner {winner['contender']}, {scores})"

    @cached_property
    def best(self) -> Run:
        """The run of the head that validation chose; of several seeds, that of the best one."""
        return Run.load(self.path / BEST)

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The rows of ``summary.csv``, the winner first, then the best on validation; accuracies in per cent."""
        return list(self.record["settings"])

    @property
    def findings(self) -> list[dict[str, str]]:
        """What makes the result doubtful, each a ``code`` and a ``message``."""
        return list(self.record["findings"])

    @property
    def worthless(self) -> bool:
        """Whether the winner is no better than guesses, or its loss ran away."""
        return any(finding["code"] in ("chance", "runaway") for finding in self.findings)

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a finished sweep.

        Raises:
            InputError: A part is missing or damaged.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such sweep; `headsmith sweep` makes one")
        record = read_versioned(path / RECORD, _Record, format=FORMAT, version=FORMAT_VERSION, advice="sweep again")
        return cls(path, record)

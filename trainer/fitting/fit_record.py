"""What is known of a fitted head beside its weights."""

from dataclasses import dataclass, field, fields
from typing import Any

from ..run_record import InitializationRecord
from ..scores import EpochScores, SplitScores
from ..train_config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """How a head was fitted.

    Attributes:
        config: Its settings, every value resolved.
        best: The epoch that was kept; ``None`` where none had a finite loss.
        history: All epochs.
        val: The scores of the kept head on validation, in float32; ``None`` without that split.
        seconds: What fitting took, validation included, for the whole bank.
        diverged: Whether its loss stopped being finite.
        placement: Where the training features were, in words.
        device: What computed: ``cpu``, ``cuda`` or one of several cards.
        initialization: What it was before the first step.
    """

    config: TrainConfig
    best: EpochScores | None
    history: list[EpochScores] = field(repr=False)
    val: SplitScores | None
    seconds: float
    diverged: bool
    placement: str
    device: str
    initialization: InitializationRecord

    @property
    def kept(self) -> EpochScores:
        """The epoch that was kept, of a head that had a finite loss once."""
        assert self.best is not None  # noqa: S101 - see `DivergedError`
        return self.best


def fields_of(record: FitRecord, kind: type[FitRecord]) -> dict[str, Any]:
    """The fields of a record that a base class of its own has."""
    return {field.name: getattr(record, field.name) for field in fields(kind)}

"""Which epoch of each head is its best so far, and which heads still improve."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from ...core.json_values import JsonObject
from ...core.typed_json import structured
from ..scores import EpochScores, SplitScores

# A validation loss is lower than another if it is by more than a thousandth.
_LESS = 1 - 1e-3


class SelectionState(TypedDict):
    """A `Selection` in a checkpoint: its attributes, an epoch as its fields."""

    histories: list[list[JsonObject]]
    best: list[JsonObject | None]
    diverged: list[bool]
    active: list[bool]
    moved: list[int]
    lowest: list[float]


class Selection:
    """The scores of every epoch and head, and what they decide.

    Args:
        patience: For every head, after how many epochs without progress on validation it stops. A higher score is
            progress; so is a lower loss, unless every row is named rightly already: the accuracy of a loss that orders
            scores may fall for many epochs before it rises.

    Attributes:
        histories: The epochs of every head.
        best: Each head's best epoch; ``None`` before the first finite one.
        diverged: Whether a head's loss, in training or on validation, stopped being finite.
        active: Whether it still improves.
        moved: The epoch of each head's last progress.
        lowest: The validation loss there was then, or before.
    """

    def __init__(self, patience: Sequence[int]) -> None:
        self.patience = patience
        self.histories: list[list[EpochScores]] = [[] for _ in patience]
        self.best: list[EpochScores | None] = [None] * len(patience)
        self.diverged = [False] * len(patience)
        self.active = [True] * len(patience)
        self.moved = [0] * len(patience)
        self.lowest = [math.inf] * len(patience)

    def add(self, head: int, epoch: EpochScores) -> bool:
        """Note an epoch of an active head; whether it is that head's best."""
        self.histories[head].append(epoch)
        losses = [epoch.loss, *([epoch.val.loss] if epoch.val else [])]
        self.diverged[head] = not all(map(math.isfinite, losses))
        before = self.best[head]
        better = not self.diverged[head] and (before is None or _merit(epoch) > _merit(before))
        if better:
            self.best[head] = epoch
        if not self.diverged[head] and self._progressed(head, before.val if before else None, epoch.val):
            self.moved[head] = epoch.epoch
        waited = epoch.epoch - self.moved[head]
        self.active[head] = not self.diverged[head] and waited < self.patience[head]
        return better

    def _progressed(self, head: int, before: SplitScores | None, val: SplitScores | None) -> bool:
        """Whether an epoch is progress over the best one before it, by their scores on validation."""
        if val is None:
            return True
        fell = val.loss < _LESS * self.lowest[head]
        if fell:
            self.lowest[head] = val.loss
        return before is None or val.score > before.score or (fell and before.top1 < 1)

    def state(self) -> SelectionState:
        """All of it, as plain values."""
        return {
            "histories": [[asdict(epoch) for epoch in history] for history in self.histories],
            "best": [None if best is None else asdict(best) for best in self.best],
            "diverged": self.diverged,
            "active": self.active,
            "moved": self.moved,
            "lowest": self.lowest,
        }

    def restore(self, state: SelectionState, where: str, advice: str) -> None:
        """Go on from what `state` gave.

        Args:
            state: The values.
            where: The file that they are from, for errors.
            advice: What to do about it, for errors.

        Raises:
            DamagedFileError: The epochs are not those of a fit.
        """
        best = [epoch or None for epoch in state["best"]]  # an empty object in older files
        self.histories = structured(state["histories"], list[list[EpochScores]], where, advice=advice)
        self.best = structured(best, list[EpochScores | None], where, advice=advice)
        self.diverged, self.active = state["diverged"], state["active"]
        self.moved, self.lowest = state["moved"], state["lowest"]

    def status(self) -> str:
        """How it goes, in a few words: the last epoch of a single head, the best so far of many."""
        epochs = self.histories[0][-1:] if len(self.best) == 1 else [epoch for epoch in self.best if epoch]
        if not epochs:
            return ""
        epoch = max(epochs, key=_merit)
        if epoch.val is None:
            return f"loss {epoch.loss:.4f}"
        top5 = "" if epoch.val.top5 is None else f"  top-5 {epoch.val.top5:.1%}"
        return f"loss {epoch.loss:.4f}  val top-1 {epoch.val.top1:.1%}{top5}"


def _merit(epoch: EpochScores) -> tuple[float, float]:
    """What chooses between epochs: the validation score, then its loss; without validation the later one."""
    return (epoch.epoch, 0.0) if epoch.val is None else (epoch.val.score, -epoch.val.loss)

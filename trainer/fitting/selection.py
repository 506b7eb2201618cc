"""Which epoch of each head is its best so far, and which heads still improve."""

import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
_STATE = ("histories", "best", "diverged", "active", "moved", "lowest")
# A validation loss is lower than another if it is by more than a thousandth.
_LESS = 1 - 1e-3


class Selection:
    """The rows of every epoch and head, and what they decide.

    Args:
        patience: For every head, after how many epochs without progress on validation it stops. A higher score is
            progress; so is a lower loss, unless every row is named rightly already: the accuracy of a loss that orders
            scores may fall for many epochs before it rises.

    Attributes:
        histories: The rows of every head: ``epoch``, ``loss``, ``seconds`` and, with a validation split, ``val``.
        best: The row of each head's best epoch; empty before the first finite one.
        diverged: Whether a head's loss, in training or on validation, stopped being finite.
        active: Whether it still improves.
        moved: The epoch of each head's last progress.
        lowest: The validation loss there was then, or before.
    """

    def __init__(self, patience: Sequence[int]) -> None:
        self.patience = patience
        self.histories: list[list[Row]] = [[] for _ in patience]
        self.best: list[Row] = [{} for _ in patience]
        self.diverged = [False] * len(patience)
        self.active = [True] * len(patience)
        self.moved = [0] * len(patience)
        self.lowest = [math.inf] * len(patience)

    def add(self, head: int, row: Row) -> bool:
        """Note a row of an active head; whether it is that head's best."""
        self.histories[head].append(row)
        losses = [row["loss"], *([row["val"]["loss"]] if row.get("val") else [])]
        self.diverged[head] = not all(map(math.isfinite, losses))
        before = self.best[head]
        better = not self.diverged[head] and (not before or _merit(row) > _merit(before))
        if better:
            self.best[head] = row
        if not self.diverged[head] and self._progressed(head, before, row):
            self.moved[head] = row["epoch"]
        waited = row["epoch"] - self.moved[head]
        self.active[head] = not self.diverged[head] and waited < self.patience[head]
        return better

    def _progressed(self, head: int, before: Row, row: Row) -> bool:
        """Whether a row is progress over the best one before it."""
        val: dict[str, Any] | None = row.get("val")
        if val is None:
            return True
        fell = val["loss"] < _LESS * self.lowest[head]
        if fell:
            self.lowest[head] = val["loss"]
        return not before or val["score"] > before["val"]["score"] or (fell and before["val"]["top1"] < 1)

    def state(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        for name in _STATE:
            setattr(self, name, state[name])

    def status(self) -> str:
        """How it goes, in a few words: the last epoch of a single head, the best so far of many."""
        rows = self.histories[0][-1:] if len(self.best) == 1 else [row for row in self.best if row]
        if not rows:
            return ""
        row = max(rows, key=_merit)
        val = row.get("val")
        if not val:
            return f"loss {row['loss']:.4f}"
        top5 = "" if val["top5"] is None else f"  top-5 {val['top5']:.1%}"
        return f"loss {row['loss']:.4f}  val top-1 {val['top1']:.1%}{top5}"


def _merit(row: Row) -> tuple[float, float]:
    """What chooses between epochs: the validation score, then its loss; without validation the later one."""
    val = row.get("val")
    return (row["epoch"], 0.0) if val is None else (val["score"], -val["loss"])

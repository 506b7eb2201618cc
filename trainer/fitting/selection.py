"""Which epoch of each head is its best so far, and which heads still improve."""

import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
_STATE = ("histories", "best", "diverged", "active")


class Selection:
    """The rows of every epoch and head, and what they decide.

    Args:
        patience: For every head, after how many epochs without a better one it stops.

    Attributes:
        histories: The rows of every head: ``epoch``, ``loss``, ``seconds`` and, with a validation split, ``val``.
        best: The row of each head's best epoch; empty before the first finite one.
        diverged: Whether a head's loss stopped being finite.
        active: Whether it still improves.
    """

    def __init__(self, patience: Sequence[int]) -> None:
        self.patience = patience
        self.histories: list[list[Row]] = [[] for _ in patience]
        self.best: list[Row] = [{} for _ in patience]
        self.diverged = [False] * len(patience)
        self.active = [True] * len(patience)

    def add(self, head: int, row: Row) -> bool:
        """Note a row of an active head; whether it is that head's best."""
        self.histories[head].append(row)
        self.diverged[head] = not math.isfinite(row["loss"])
        better = not self.diverged[head] and (not self.best[head] or _merit(row) > _merit(self.best[head]))
        if better:
            self.best[head] = row
        waited = row["epoch"] - self.best[head].get("epoch", 0)
        self.active[head] = not self.diverged[head] and waited < self.patience[head]
        return better

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

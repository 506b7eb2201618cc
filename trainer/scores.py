"""How a head answers the rows of a split, at its end and after each epoch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitScores:
    """The scores of a head on a split.

    Attributes:
        n: Rows.
        loss: The mean loss.
        top1: Share of the rows whose label has the highest logit.
        top5: Share of the rows whose label is among the five highest; ``None`` with fewer than five classes.
        score: What epochs and settings are chosen by, see `TrainConfig.select`.
    """

    n: int
    loss: float
    top1: float
    top5: float | None
    score: float

    @property
    def hits(self) -> int:
        """How many rows have their label on top."""
        return round(self.top1 * self.n)


@dataclass(frozen=True)
class EpochScores:
    """What an epoch reached: a line of ``metrics.jsonl``.

    Attributes:
        epoch: Its number, from 1; 0 is what a fine-tuning started from.
        loss: The mean loss over the training rows; of epoch 0, which trained nothing, that on validation.
        seconds: Since the fit began.
        val: The scores on validation; ``None`` without that split.
    """

    epoch: int
    loss: float
    seconds: float
    val: SplitScores | None = None

"""A measurement beside another: what was published, another runtime, or another execution provider."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...metrics.equality import difference
from ...metrics.proportions import Share
from ..metrics import RowScores, agreement, score_rows
from ..statistics import PairedDifference, paired_difference

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """Measured accuracy beside the published one, in 0..1.

    Attributes:
        top1: Published top-1, or ``None``.
        top5: Published top-5, or ``None``.
        source: Who published it.
        difference: Measured minus published top-1.
        within: Whether the published top-1 lies in the interval of the measured one.
    """

    top1: float | None
    top5: float | None
    source: str
    difference: float | None
    within: bool | None


def judge(measured: Share | None, top1: float | None, top5: float | None, source: str) -> Verdict:
    """Compare a measured top-1 with a published one."""
    if measured is None or top1 is None:
        return Verdict(top1, top5, source, None, None)
    return Verdict(top1, top5, source, measured.value - top1, measured.low <= top1 <= measured.high)


@dataclass(frozen=True)
class Flips:
    """The same classifier in another runtime, on the same inputs.

    Attributes:
        runtime: Name and version of the other one.
        equal: Inputs with the same first answer.
        tie: Inputs whose first answers differ, where one shares the highest logit of the other.
        different: All others, those with NaN in either among them.
        flipped: Ids of these.
        difference: Accuracy here minus there, paired.
        max_abs_difference: The largest difference of a kept logit, over inputs with the same answers and finite ones.
    """

    runtime: str
    equal: int
    tie: int
    different: int
    flipped: list[str]
    difference: PairedDifference
    max_abs_difference: float


def flips(here: RowScores, there: RowScores, ids: list[str], runtime: str) -> Flips:
    """Compare two runs of a classifier over the same inputs.

    Args:
        here: Scores of the file.
        there: Scores of the other runtime, with the same classes.
        ids: Of the inputs.
        runtime: Name and version of the other one.
    """
    found = agreement(here, there)
    same = (here.topk_indices == there.topk_indices).all(axis=1) & here.answered
    gaps = difference(here.topk_logits[same].astype(np.float64), there.topk_logits[same].astype(np.float64))
    return Flips(
        runtime=runtime,
        equal=found.equal,
        tie=found.tie,
        different=found.different,
        flipped=[ids[row] for row in found.flips],
        difference=paired_difference(here.correct(), there.correct()),
        max_abs_difference=gaps.largest,
    )


@dataclass(frozen=True)
class CpuDifference:
    """A file under another provider than the CPU, and the same file there, on some of the held-out inputs.

    Attributes:
        n: How many inputs were compared.
        flips: Inputs with another first answer, those with NaN in either among them; ties are none.
        ties: Inputs whose first answers differ, where one shares the highest logit of the other.
        largest: The largest absolute difference of a logit, over all classes, of inputs that are finite in both.
        share: The same as a share of the largest logit on the CPU.
        not_finite: Inputs with NaN or infinity in either.
    """

    n: int
    flips: int
    ties: int
    largest: float
    share: float
    not_finite: int

    def __str__(self) -> str:
        return (
            f"logits differ by up to {self.largest:.2g} ({self.share:.2g} of the largest) from those on the CPU, "
            f"{self.flips} of {self.n} first answers"
        )


def compare(expected: Array, found: Array) -> CpuDifference:
    """Compare logits ``(N, C)`` with those on the CPU."""
    labels = np.zeros(len(expected), np.int64)  # who is right does not matter
    first = agreement(score_rows(expected, labels), score_rows(found, labels))
    gap, finite = difference(expected, found), np.isfinite(expected)
    largest = np.abs(expected[finite]).max(initial=0.0)
    share = gap.largest / float(largest) if gap.largest else 0.0
    return CpuDifference(len(expected), first.different, first.tie, gap.largest, share, gap.not_finite)

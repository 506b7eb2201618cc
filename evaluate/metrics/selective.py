"""What is gained by answering only where the classifier is sure."""

from dataclasses import dataclass

import numpy as np

from ...core.errors import InputError
from ...core.typed_json import check_lengths
from ...metrics.metric_arguments import numbers, same_rows, shares, truths
from .row_scores import Array, Floats

COVERAGES = np.arange(1, 21) / 20


@dataclass(frozen=True)
class Selective:
    """Risk against coverage (El-Yaniv and Wiener 2010).

    Attributes:
        coverage: ``(M,)`` float64, the share of the rows that is answered, the surest first.
        threshold: ``(M,)`` float64, the lowest confidence among them; minus infinity for a row without a confidence.
        risk: ``(M,)`` float64, the share of them that is wrong; 1 minus the selective accuracy.
        aurc: The mean of the risk over the coverages 1/N, 2/N, ..., 1 (Geifman et al. 2019).
    """

    coverage: Floats
    threshold: Floats
    risk: Floats
    aurc: float

    def __post_init__(self) -> None:
        """Refuse columns of other lengths, which a damaged file may hold."""
        check_lengths({"coverage": self.coverage, "threshold": self.threshold, "risk": self.risk})


def selective(confidences: Array, correct: Array, *, coverages: Array = COVERAGES) -> Selective:
    """The risk when only the surest rows are answered.

    Nothing depends on the order of rows: of equally confident ones each counts with their mean error, which is what
    all orders give on average. Rows without a confidence come last.

    Args:
        confidences: ``(N,)``, NaN where there is none.
        correct: ``(N,)`` bool.
        coverages: ``(M,)`` in 0..1; each is rounded up to whole rows.

    Returns:
        The curve at ``coverages``, and the area under the whole of it.

    Raises:
        InputError: A confidence that is no number, a coverage outside 0..1, what is not true or false, other rows,
            or none.
    """
    confidences, correct = numbers("confidences", confidences), truths("correct", correct)
    same_rows({"confidences": confidences, "correct": correct})
    coverages = shares("coverages", coverages)
    if not len(correct):
        raise InputError("correct: 0 rows found, expected at least one")
    n = len(correct)
    sureness = np.where(np.isnan(confidences), -np.inf, confidences)
    values, level, counts = np.unique(-sureness, return_inverse=True, return_counts=True)
    errors = np.bincount(level, weights=~correct) / counts
    risks = np.cumsum(np.repeat(errors, counts)) / np.arange(1, n + 1)
    last = np.clip(np.ceil(coverages * n - 1e-9).astype(np.int64) - 1, 0, n - 1)
    reached = np.searchsorted(np.cumsum(counts), last, side="right")
    return Selective((last + 1) / n, -values[reached].astype(np.float64), risks[last], float(risks.mean()))

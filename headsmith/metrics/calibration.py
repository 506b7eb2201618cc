"""Whether a classifier is right as often as it says."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ..core.errors import InputError, near
from ..core.printable import shown
from ..core.typed_json import check_lengths
from .metric_arguments import same_rows, shares, truths, whole

Array = np.ndarray[Any, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Bins = Literal["width", "mass"]


@dataclass(frozen=True)
class Reliability:
    """The reliability curve and its expected calibration error.

    Attributes:
        edges: ``(B + 1,)`` float64, ascending; a confidence belongs to the bin whose upper edge it does not exceed.
        n: ``(B,)`` int64, rows a bin.
        confidence: ``(B,)`` float64, their mean confidence; NaN in an empty bin.
        accuracy: ``(B,)`` float64, the share of them that is right; NaN in an empty bin.
        ece: The mean over rows of ``|accuracy - confidence|`` of their bin; NaN without rows.
    """

    edges: Floats
    n: Ints
    confidence: Floats
    accuracy: Floats
    ece: float

    def __post_init__(self) -> None:
        """Refuse columns of other lengths, which a damaged file may hold."""
        check_lengths({"edges": self.edges[1:], "n": self.n, "confidence": self.confidence, "accuracy": self.accuracy})


def reliability(confidences: Array, correct: Array, *, bins: int = 15, equal: Bins = "width") -> Reliability:
    """Compare confidences with how often they are right.

    Bins of equal width and 15 of them are the habit of Guo et al. (ICML 2017); bins of equal mass, with as many rows in
    each as ties allow, weigh sparse regions no more than others (Nixon et al. 2019).

    Args:
        confidences: ``(N,)`` in 0..1; rows with NaN are left out.
        correct: ``(N,)`` bool.
        bins: B.
        equal: ``width``: edges at i / B; ``mass``: edges at the quantiles i / B.

    Returns:
        The curve.

    Raises:
        InputError: A confidence outside 0..1, what is not true or false, other rows, no bins, or another ``equal``.
    """
    if equal not in get_args(Bins):
        hint = near(str(equal), get_args(Bins))
        raise InputError(f"equal: {shown(equal)} found, expected one of {', '.join(get_args(Bins))}{hint}")
    confidences, correct = shares("confidences", confidences, unknown=True), truths("correct", correct)
    same_rows({"confidences": confidences, "correct": correct})
    bins = whole("bins", bins, 1)
    known = ~np.isnan(confidences)
    confidences, correct = confidences[known].astype(np.float64), correct[known]
    edges = np.linspace(0, 1, bins + 1)
    if equal == "mass" and len(confidences):
        edges = np.quantile(confidences, edges)
    place = np.searchsorted(edges[1:-1], confidences)
    n = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=one, minlength=bins) for one in (confidences, correct)]
    with np.errstate(invalid="ignore"):
        confidence, accuracy = (one / n for one in sums)
    gap = np.abs(sums[0] - sums[1]).sum()
    return Reliability(edges, n, confidence, accuracy, float(gap / len(correct)) if len(correct) else float("nan"))

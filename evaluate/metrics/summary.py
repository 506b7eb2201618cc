"""One classifier on one held-out set, in numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...core.errors import InputError
from ...core.printable import shown
from ...metrics.calibration import reliability
from ...metrics.metric_arguments import whole
from ...metrics.proportions import Share, top_k
from ..options import KS
from .row_scores import Array, RowScores
from .selective import selective

# The highest value of each figure; of all the lowest is 0.
_MOST = {"nll": np.inf, "brier": 2.0} | dict.fromkeys(
    ("mean_recall", "ece", "ece_mass", "aurc", "predicted_share", "label_share"), 1.0
)
_ROUNDING = 1e-3  # of float32 probabilities


@dataclass(frozen=True)
class Summary:
    """What is said of N rows.

    A row with NaN is wrong for every k. A row whose softmax is not defined is in no figure about probabilities, and
    in the curve of risk against coverage it comes last.

    Attributes:
        n: N.
        num_logits: C, the classes that the classifier knows.
        num_classes: The classes that could be answered, C or fewer.
        nan: Rows with NaN.
        no_softmax: Rows whose softmax is not defined, those with NaN among them.
        tied: Rows whose highest logit two classes share.
        top: For each k the share of rows with the right class among the k best; ``None`` with fewer than k classes.
        mean_recall: The mean over classes with rows of the share whose first answer is right.
        empty_classes: Classes without rows.
        nll: The mean of minus the natural logarithm of the right class's probability; infinite where one is 0.
        brier: The mean of the summed squares of (probability - truth) over the classes (Brier 1950): 0 to 2.
        ece: Expected calibration error of the first answer, 15 bins of equal width.
        ece_mass: The same with 15 bins of equal mass.
        aurc: Area under the curve of risk against coverage.
        predicted_share: Share of rows that get the most frequent first answer.
        label_share: Share of rows of the most frequent class.

    The figures ``mean_recall``, ``empty_classes``, ``nll``, ``brier`` and ``label_share`` are ``None`` where a row may
    have several right classes; those about probabilities are ``None`` where no row has them.
    """

    n: int
    num_logits: int
    num_classes: int
    nan: int
    no_softmax: int
    tied: int
    top: dict[int, Share | None]
    mean_recall: float | None
    empty_classes: int | None
    nll: float | None
    brier: float | None
    ece: float | None
    ece_mass: float | None
    aurc: float
    predicted_share: float
    label_share: float | None

    def __post_init__(self) -> None:
        """Refuse figures that contradict each other, which a damaged file may name."""
        for k, share in self.top.items():
            if share is not None and share.n != self.n:
                raise ValueError(f"top.{k}.n: found {share.n}, expected {self.n} as n")
        if not 1 <= self.num_classes <= self.num_logits:
            raise ValueError(f"num_classes: found {self.num_classes}, expected 1 to {self.num_logits}, num_logits")
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None and not -_ROUNDING <= value <= most + _ROUNDING:
                raise ValueError(f"{name}: found {value}, expected 0 to {most:g}")

    def columns(self) -> dict[str, float | None]:
        """The figures under flat names, shares in 0..1, each k with the ends of its interval.

        Where fewer classes could be answered than the classifier has logits, every name says so: ``top1_of_200`` is
        never taken for ``top1``.
        """
        found: dict[str, float | None] = {}
        for k, share in self.top.items():
            value, low, high = (share.value, share.low, share.high) if share else (None, None, None)
            found |= {f"top{k}": value, f"top{k}_low": low, f"top{k}_high": high}
        names = ("mean_recall", "nll", "brier", "ece", "ece_mass", "aurc")
        found |= {name: getattr(self, name) for name in names}
        suffix = "" if self.num_classes == self.num_logits else f"_of_{self.num_classes}"
        return {name + suffix: value for name, value in found.items()}


def summarize(scores: RowScores, *, ks: Sequence[int] = KS) -> Summary:
    """Compute every figure.

    Args:
        scores: Of N rows, at least one.
        ks: Of the top-k accuracies.

    Raises:
        InputError: A k that is no whole number, or below 1.
    """
    if not isinstance(ks, Sequence | np.ndarray):
        raise InputError(f"ks: {shown(ks)} found, expected several, such as ({shown(ks)},)")
    ks = [whole("ks", k, 1) for k in ks]
    num_classes, multi_label = len(scores.classes), scores.multi_label
    correct, known = scores.correct(), ~np.isnan(scores.confidences)
    some = bool(known.any())
    own, sum_of_squares = scores.log_probabilities[known], scores.sum_of_squares[known]
    labels = np.bincount(scores.labels)
    answers = scores.topk_indices[scores.answered, 0]
    return Summary(
        n=len(scores),
        num_logits=scores.num_logits,
        num_classes=num_classes,
        nan=int((~scores.answered).sum()),
        no_softmax=int((~known).sum()),
        tied=int(scores.tied.sum()),
        top={k: top_k(scores.ranks, k, num_classes) for k in ks},
        mean_recall=None if multi_label else mean_recall(scores.labels, correct),
        empty_classes=None if multi_label else num_classes - int(np.count_nonzero(labels)),
        nll=float(abs(own.mean())) if some and not multi_label else None,
        brier=float((sum_of_squares - 2 * np.exp(own) + 1).mean()) if some and not multi_label else None,
        ece=reliability(scores.confidences, correct).ece if some else None,
        ece_mass=reliability(scores.confidences, correct, equal="mass").ece if some else None,
        aurc=selective(scores.confidences, correct).aurc,
        predicted_share=float(np.bincount(answers).max() / len(scores)) if len(answers) else 0.0,
        label_share=None if multi_label else float(labels.max() / len(scores)),
    )


def mean_recall(labels: Array, correct: Array) -> float:
    """The mean over classes with rows of the share of their rows that is right.

    Args:
        labels: ``(N,)`` integers from 0, at least one.
        correct: ``(N,)`` bool.
    """
    n = np.bincount(labels)
    hits = np.bincount(labels, weights=correct)
    return float((hits[n > 0] / n[n > 0]).mean())


def summarize_groups(scores: RowScores, groups: Sequence[str], *, ks: Sequence[int] = KS) -> dict[str, Summary]:
    """The summary of each group of rows, by the group's name, in the order of names.

    Args:
        scores: Of N rows.
        groups: N names.
        ks: Of the top-k accuracies.

    Raises:
        InputError: Not N names, or a k below 1.
    """
    if len(groups) != len(scores):
        raise InputError(f"groups: {len(groups)} names found, expected one for each of {len(scores)} rows")
    encoded = pa.array(groups, type=pa.string()).dictionary_encode()
    codes, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    return {names[code]: summarize(scores[np.flatnonzero(codes == code)], ks=ks) for code in order}

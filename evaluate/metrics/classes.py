"""What happens to each class, and which classes are taken for one another."""

from dataclasses import dataclass

import numpy as np

from ...core.typed_json import check_lengths
from ...metrics.metric_arguments import whole
from ...metrics.proportions import wilson_intervals
from .row_scores import Array, Floats, Ints, RowScores


@dataclass(frozen=True)
class ClassTable:
    """A line for each of S classes; all fields have the shape ``(S,)``.

    Attributes:
        classes: int64, the class.
        n: int64, its rows.
        top1: float64, the share of them whose first answer is right (the class's recall); NaN without rows.
        top1_low: float64, lower end of its 95 % Wilson interval; 0 without rows.
        top1_high: float64, upper end; 1 without rows.
        topk: float64, the share of them with the class among the k best answers; NaN with fewer than k classes too.
        topk_low: float64, lower end of its interval.
        topk_high: float64, upper end.
        mistaken_for: int64, the most frequent wrong first answer, of equally frequent ones the lowest; -1 for none.
        mistaken: int64, how often.
    """

    classes: Ints
    n: Ints
    top1: Floats
    top1_low: Floats
    top1_high: Floats
    topk: Floats
    topk_low: Floats
    topk_high: Floats
    mistaken_for: Ints
    mistaken: Ints

    def __post_init__(self) -> None:
        """Refuse columns of other lengths, which a damaged file may hold."""
        check_lengths(vars(self))


@dataclass(frozen=True)
class ConfusedPairs:
    """Pairs of classes that are taken for one another, the most frequent first; all fields have the shape ``(M,)``.

    Attributes:
        first: int64, the class of the pair that is more often taken for the other.
        second: int64, the other class.
        first_as_second: int64, rows of the first whose first answer is the second.
        second_as_first: int64, rows of the second whose first answer is the first.
    """

    first: Ints
    second: Ints
    first_as_second: Ints
    second_as_first: Ints

    def __post_init__(self) -> None:
        """Refuse columns of other lengths, which a damaged file may hold."""
        check_lengths(vars(self))


def class_table(scores: RowScores, *, k: int = 5) -> ClassTable:
    """Accuracy of each class that could be answered, those without rows too, and what it is mistaken for.

    Args:
        scores: Of rows with one right class each.
        k: Of ``topk``, at least 1.

    Raises:
        InputError: ``k`` is no whole number, or below 1.
    """
    k = whole("k", k, 1)
    applies = k <= len(scores.classes)
    n = _rows_of_classes(scores, np.ones(len(scores), dtype=bool))
    top1, topk = (_rows_of_classes(scores, scores.correct(one)) for one in (1, k))
    labels, answers = _mistakes(scores)
    pairs, counts = np.unique(labels * scores.num_logits + answers, return_counts=True)
    labels, answers = np.divmod(pairs, scores.num_logits)
    order = np.lexsort((answers, -counts, labels))
    missed, worst = np.unique(labels[order], return_index=True)
    mistaken_for, mistaken = np.full(scores.num_logits, -1), np.zeros(scores.num_logits, dtype=np.int64)
    mistaken_for[missed], mistaken[missed] = answers[order][worst], counts[order][worst]
    return ClassTable(
        scores.classes,
        n,
        *_shares(top1, n),
        *_shares(topk * applies, n * applies),
        mistaken_for=mistaken_for[scores.classes],
        mistaken=mistaken[scores.classes],
    )


def confused_pairs(scores: RowScores, *, limit: int | None = None) -> ConfusedPairs:
    """Which classes are taken for one another, in either direction.

    Args:
        scores: Of rows with one right class each.
        limit: Give only that many pairs, those of most mistakes; ``None`` gives all.

    Raises:
        InputError: ``limit`` is no whole number, or below 0.
    """
    limit = None if limit is None else whole("limit", limit, 0)
    labels, answers = _mistakes(scores)
    low, high = np.minimum(labels, answers), np.maximum(labels, answers)
    pairs, place, counts = np.unique(low * scores.num_logits + high, return_inverse=True, return_counts=True)
    upward = np.bincount(place, weights=labels < answers, minlength=len(pairs)).astype(np.int64)
    order = np.lexsort((pairs, -counts))[:limit]
    (low, high), up, down = np.divmod(pairs[order], scores.num_logits), upward[order], (counts - upward)[order]
    first, second = np.where(up >= down, (low, high), (high, low))
    return ConfusedPairs(first, second, np.maximum(up, down), np.minimum(up, down))


def _rows_of_classes(scores: RowScores, rows: Array) -> Array:
    return np.bincount(scores.labels[rows], minlength=scores.num_logits)[scores.classes]


def _shares(hits: Array, n: Array) -> tuple[Array, Array, Array]:
    with np.errstate(invalid="ignore"):
        return hits / n, *wilson_intervals(hits, n)


def _mistakes(scores: RowScores) -> tuple[Array, Array]:
    """Right class and first answer, int64, of the rows whose first answer is wrong; rows with NaN have none."""
    wrong = scores.answered & ~scores.correct()
    return scores.labels[wrong].astype(np.int64), scores.topk_indices[wrong, 0].astype(np.int64)

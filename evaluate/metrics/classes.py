"""What happens to each class, and which classes are taken for one another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, triu

from ...export.accuracy import wilson_intervals
from .row_scores import Array, RowScores


@dataclass(frozen=True)
class ClassTable:
    """A line for each of S classes; all fields have the shape ``(S,)``.

    Attributes:
        classes: int64, the class.
        n: int64, its rows.
        top1: float64, the share of them whose first answer is right (the class's recall); NaN without rows.
        top1_low: float64, lower end of its 95 % Wilson interval; 0 without rows.
        top1_high: float64, upper end; 1 without rows.
        topk: float64, the share of them with the class among the k best answers.
        topk_low: float64, lower end of its interval.
        topk_high: float64, upper end.
        mistaken_for: int64, the most frequent wrong first answer, of equally frequent ones the lowest; -1 for none.
        mistaken: int64, how often.
    """

    classes: Array
    n: Array
    top1: Array
    top1_low: Array
    top1_high: Array
    topk: Array
    topk_low: Array
    topk_high: Array
    mistaken_for: Array
    mistaken: Array


@dataclass(frozen=True)
class ConfusedPairs:
    """Pairs of classes that are taken for one another, the most frequent first; all fields have the shape ``(M,)``.

    Attributes:
        first: int64, the class of the pair that is more often taken for the other.
        second: int64, the other class.
        first_as_second: int64, rows of the first whose first answer is the second.
        second_as_first: int64, rows of the second whose first answer is the first.
    """

    first: Array
    second: Array
    first_as_second: Array
    second_as_first: Array


def class_table(scores: RowScores, *, k: int = 5) -> ClassTable:
    """Accuracy of each class that could be answered, those without rows too, and what it is mistaken for.

    Args:
        scores: Of rows with one right class each.
        k: Of ``topk``.
    """
    classes, n = scores.classes, _rows_of_classes(scores, np.ones(len(scores), dtype=bool))
    top1, topk = (_rows_of_classes(scores, scores.correct(one)) for one in (1, k))
    wrong = _mistakes(scores)[classes]
    mistaken = wrong.max(axis=1).toarray().ravel()
    return ClassTable(
        classes,
        n,
        *_shares(top1, n),
        *_shares(topk, n),
        mistaken_for=np.where(mistaken > 0, wrong.argmax(axis=1), -1),
        mistaken=mistaken,
    )


def confused_pairs(scores: RowScores, *, limit: int | None = None) -> ConfusedPairs:
    """Which classes are taken for one another, in either direction.

    Args:
        scores: Of rows with one right class each.
        limit: Give only that many pairs, those of most mistakes.
    """
    wrong = _mistakes(scores)
    both = triu(wrong + wrong.T, k=1, format="coo")
    low, high = both.row.astype(np.int64), both.col.astype(np.int64)
    order = np.lexsort((high, low, -both.data))[:limit]
    low, high = low[order], high[order]
    down, up = wrong[low, high], wrong[high, low]
    swap = up > down
    return ConfusedPairs(
        np.where(swap, high, low), np.where(swap, low, high), np.maximum(down, up), np.minimum(down, up)
    )


def _rows_of_classes(scores: RowScores, rows: Array) -> Array:
    return np.bincount(scores.labels[rows], minlength=scores.num_logits)[scores.classes]


def _shares(hits: Array, n: Array) -> tuple[Array, Array, Array]:
    with np.errstate(invalid="ignore"):
        return hits / n, *wilson_intervals(hits, n)


def _mistakes(scores: RowScores) -> Any:
    """``(C, C)`` sparse int64: rows of a class by their wrong first answer; rows with NaN have none."""
    wrong = scores.answered & ~scores.correct()
    where = scores.labels[wrong], scores.topk_indices[wrong, 0]
    ones = np.ones(int(wrong.sum()), dtype=np.int64)
    return coo_array((ones, where), shape=(scores.num_logits, scores.num_logits)).tocsr()

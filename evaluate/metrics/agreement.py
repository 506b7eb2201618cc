"""Whether two runs of a classifier give the same first answers."""

from dataclasses import dataclass

import numpy as np

from .row_scores import Array, RowScores


@dataclass(frozen=True)
class Agreement:
    """Rows by whether two classifiers, or two files of one, have the same first answer.

    Attributes:
        equal: Rows with the same first answer.
        tie: Rows with different ones where the first answer of one shares the highest logit of the other.
        different: All others, those that one or neither answers among them: NaN is equal to nothing.
        flips: ``(different,)`` int64, which rows these are.
        margins: ``(different, 2)`` float64, by how much the highest logit exceeds the second, in either run.
    """

    equal: int
    tie: int
    different: int
    flips: Array
    margins: Array


def agreement(first: RowScores, second: RowScores) -> Agreement:
    """Compare the first answers of two runs over the same rows; ties are seen among the k answers that were kept."""
    same = (first.topk_indices[:, 0] == second.topk_indices[:, 0]) & first.answered & second.answered
    tie = ~same & (_shares_the_top(first, second) | _shares_the_top(second, first))
    flips = np.flatnonzero(~same & ~tie)
    margins = np.stack([_margins(one)[flips] for one in (first, second)], axis=1)
    return Agreement(int(same.sum()), int(tie.sum()), len(flips), flips, margins)


def _shares_the_top(scores: RowScores, other: RowScores) -> Array:
    """Whether the other's first answer has the highest logit here too."""
    top = scores.topk_logits == scores.topk_logits[:, :1]
    there: Array = np.any(top & (scores.topk_indices == other.topk_indices[:, :1]), axis=1)
    return there & scores.answered & other.answered


def _margins(scores: RowScores) -> Array:
    if scores.topk_logits.shape[1] < 2:
        return np.full(len(scores), np.inf)
    return scores.topk_logits[:, 0].astype(np.float64) - scores.topk_logits[:, 1]

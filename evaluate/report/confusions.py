"""The classes that a classifier takes for one another, and the mistakes that it was surest of."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .ranked_models import RankedModel

PAIRS, MISTAKES = 6, 4


@dataclass(frozen=True)
class Mistake:
    """An input whose first answer is wrong; ``confidence`` is that answer's probability."""

    id: str
    label: str
    answer: str
    confidence: float


@dataclass(frozen=True)
class Confusion:
    """Two classes that are taken for one another; see `metrics.ConfusedPairs`.

    Attributes:
        first: The class that is more often taken for the other.
        second: The other.
        n: Inputs of the first class.
        first_as_second: Inputs of the first that are taken for the second.
        second_as_first: The other way round.
        mistakes: The surest of these.
    """

    first: str
    second: str
    n: int
    first_as_second: int
    second_as_first: int
    mistakes: list[Mistake]

    def shown(self, pictures: Iterable[str]) -> list[Mistake]:
        """The mistakes of which there are pictures."""
        return [mistake for mistake in self.mistakes if mistake.id in pictures]


def confusions(model: RankedModel) -> list[Confusion]:
    """The worst pairs of classes, the worst first; none where inputs may have several right classes."""
    pairs, scores, names = model.result.confused, model.predictions.scores, model.result.labels
    if pairs is None:
        return []
    answers, labels = scores.topk_indices[:, 0], scores.labels
    found = []
    for first, second, there, back in zip(
        pairs.first[:PAIRS], pairs.second, pairs.first_as_second, pairs.second_as_first, strict=False
    ):
        rows = np.flatnonzero(((labels == first) & (answers == second)) | ((labels == second) & (answers == first)))
        surest = rows[np.argsort(-scores.confidences[rows], kind="stable")][:MISTAKES]
        mistakes = [
            Mistake(model.predictions.ids[row], names[labels[row]], names[answers[row]], float(scores.confidences[row]))
            for row in surest
        ]
        n = int(np.count_nonzero(labels == first))
        found.append(Confusion(names[first], names[second], n, int(there), int(back), mistakes))
    return found

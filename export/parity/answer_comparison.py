"""Compare the answers of an exported file with those it should give, batch by batch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.special import softmax

from ...metrics.equality import Difference, difference, finite_rows, other_shape
from ...metrics.ranks import ranks
from ..runtime import Array, Outputs
from .parity_report import Flip, ParityReport, softmax_limit


class Parity:
    """Compares batch by batch.

    Args:
        name: The file that is compared.
        labels: The class names, in the order of the logits.
        tolerance: See `ParityReport`.
        allowed: The largest difference of a logit that passes; ``None`` takes the tolerance, times the largest logit
            where that is above 1.
        share: In place of both: the largest difference that passes, as a share of the largest logit; a flip is excused
            on a margin that two such differences make.
        exact: See `ParityReport`.
        against: See `ParityReport`.
    """

    def __init__(
        self,
        name: str,
        labels: Sequence[str],
        tolerance: float,
        *,
        allowed: float | None = None,
        share: float | None = None,
        exact: bool = True,
        against: str = "the Python module",
    ) -> None:
        self._name, self._labels, self._tolerance, self._allowed = name, labels, tolerance, allowed
        self._share, self._exact, self._against = share, exact, against
        self._n = self._k = self._equal_top1 = self._equal_topk = self._inconsistent = self._not_finite = 0
        self._answers = 0
        self._logits = self._scores = Difference()
        self._largest = 0.0
        self._shapes: dict[str, None] = {}
        self._flips: list[tuple[Flip, bool]] = []
        self._batches: dict[int, float] = {}

    def add(self, ids: Sequence[str], reference: Outputs, candidate: Outputs) -> None:
        """Compare the answers to one batch."""
        self._n += len(ids)
        self._k = reference.topk_indices.shape[1]
        finite = self._finite(reference, candidate)
        if finite is None:
            return
        logits = difference(reference.logits[finite], candidate.logits[finite])
        self._logits += logits
        self._note(len(ids), logits.largest)
        self._scores += difference(reference.topk_scores[finite], candidate.topk_scores[finite])
        if reference.probabilities is not None and candidate.probabilities is not None:
            self._scores += difference(reference.probabilities[finite], candidate.probabilities[finite])
        self._largest = max(self._largest, float(np.abs(reference.logits[finite]).max(initial=0.0)))
        known = finite & ((candidate.topk_indices >= 0) & (candidate.topk_indices < len(self._labels))).all(axis=1)
        same_top1 = reference.topk_indices[:, 0] == candidate.topk_indices[:, 0]
        same_topk = (np.sort(reference.topk_indices) == np.sort(candidate.topk_indices)).all(1)
        self._equal_top1 += int((same_top1 & known).sum())
        self._equal_topk += int((same_topk & known).sum())
        for row in np.flatnonzero(known & ~(same_top1 & same_topk)).tolist():
            self._flip(ids[row], reference.rows(row), candidate.rows(row))

    def add_batch_size(self, reference: Outputs, candidate: Outputs) -> None:
        """Compare the answers to further inputs, or to the same in a batch of another size. They are not counted.

        Where the logits of a row are larger than any before, so is what rounding does: its difference counts by as much
        less.
        """
        finite = self._finite(reference, candidate)
        if finite is None:
            return
        expected, found = reference.logits[finite], candidate.logits[finite]
        sizes = np.abs(expected).max(axis=1, keepdims=True).astype(np.float64)
        scale = self._largest / np.maximum(sizes, self._largest) if self._largest else np.ones_like(sizes)
        self._note(len(finite), difference(expected * scale, found * scale).largest)

    def add_own(self, answer: Outputs) -> None:
        """Look at answers that are right where they follow from their own logits."""
        self._answers += len(answer.logits)
        self._inconsistent += int((~follows_logits(answer)).sum())

    def report(self) -> ParityReport:
        """What was found so far."""
        tolerance, allowed = self._limits()
        return ParityReport(
            name=self._name,
            against=self._against,
            n=self._n,
            k=self._k,
            exact=self._exact,
            tolerance=tolerance,
            allowed_difference=allowed,
            max_abs_difference=self._logits.largest,
            mean_abs_difference=self._logits.mean,
            max_score_difference=self._scores.largest,
            largest_logit=self._largest,
            equal_top1=self._equal_top1,
            equal_topk=self._equal_topk,
            batches=self._batches,
            share=self._share,
            inconsistent=self._inconsistent,
            not_finite=self._not_finite,
            answers=self._answers,
            shapes=tuple(self._shapes),
            flips=tuple(replace(flip, verdict=_verdict(flip.margin, tied, tolerance)) for flip, tied in self._flips),
        )

    def _limits(self) -> tuple[float, float]:
        """The margin on which a flip is excused, and the difference that passes."""
        if self._share is not None:
            return 2 * self._share * self._largest, self._share * self._largest
        allowed = self._tolerance * max(1.0, self._largest) if self._allowed is None else self._allowed
        return self._tolerance, allowed

    def _finite(self, reference: Outputs, candidate: Outputs) -> Array | None:
        """Which rows ``(N,)`` have neither NaN nor infinity; ``None`` where an output has another shape. Both count."""
        self._answers += len(reference.logits)
        pairs = zip(Outputs._fields, reference, candidate, strict=True)
        shapes = {name: other_shape(expected, found) for name, expected, found in pairs if expected is not None}
        wrong = [f"{name} {shape}" for name, shape in shapes.items() if shape]
        if wrong:
            self._shapes |= dict.fromkeys(wrong)
            return None
        finite = finite_rows(*reference, *candidate)
        self._not_finite += int((~finite).sum())
        self._inconsistent += int((~follows_logits(candidate) & finite).sum())
        return finite

    def _note(self, size: int, largest: float) -> None:
        self._batches[size] = max(self._batches.get(size, 0.0), largest)

    def _flip(self, sample: str, reference: Outputs, candidate: Outputs) -> None:
        """Note the flips of one row: of the best class, and of the set of the k best."""
        mine, other = reference.topk_indices.tolist(), candidate.topk_indices.tolist()
        pairs: list[tuple[Literal["top1", "topk"], list[int], list[int]]] = [
            ("top1", mine[:1], other[:1]),
            ("topk", [index for index in mine if index not in other], [index for index in other if index not in mine]),
        ]
        for kind, lost, gained in pairs:
            if lost != gained:
                margin = float(reference.logits[lost].max() - reference.logits[gained].min())
                tied = bool(candidate.logits[lost].max() == candidate.logits[gained].min())
                before, after = (tuple(self._labels[index] for index in indices) for indices in (lost, gained))
                self._flips.append((Flip(sample, kind, before, after, margin, "different"), tied))


def _verdict(margin: float, tied: bool, tolerance: float) -> str:
    if margin <= tolerance:
        return "tie" if margin == 0 else "within tolerance"
    return "rounded to a tie" if tied else "different"


def follows_logits(outputs: Outputs) -> Array:
    """Which rows have the top-k and the probabilities that their own logits ask for: ``(N,)`` bool.

    Of equal logits the lower index stands first; scores and probabilities are their softmax, up to its rounding.
    """
    logits = outputs.logits
    known = ((outputs.topk_indices >= 0) & (outputs.topk_indices < logits.shape[1])).all(axis=1)
    indices = np.where(known[:, None], outputs.topk_indices, 0)
    best = np.take_along_axis(logits, indices, axis=1)
    falling = (best[:, :-1] > best[:, 1:]) | ((best[:, :-1] == best[:, 1:]) & (indices[:, :-1] < indices[:, 1:]))
    # k answers in falling order, of which the last is the k-th of all: they are the k best.
    last = ranks(logits, indices[:, -1])
    follows: Array = known & falling.all(1) & (last == indices.shape[1] - 1)
    return follows & _is_softmax(outputs, indices)


def _is_softmax(outputs: Outputs, indices: Array) -> Array:
    with np.errstate(invalid="ignore"):  # rows with infinity
        expected = softmax(outputs.logits.astype(np.float64), axis=1)
        limits = softmax_limit(np.abs(outputs.logits).max(axis=1, keepdims=True))
        near = np.abs(outputs.topk_scores - np.take_along_axis(expected, indices, axis=1)) <= limits
        follows: Array = near.all(axis=1)
        if outputs.probabilities is not None:
            follows &= (np.abs(outputs.probabilities - expected) <= limits).all(axis=1)
    return follows

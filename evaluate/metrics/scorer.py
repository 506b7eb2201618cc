"""Scores that grow batch by batch, so that the logits of a whole data set are never held."""

import numpy as np

from ...core.errors import InputError
from ...core.printable import shown
from ...metrics.metric_arguments import array_of, whole
from .multi_label import best_of
from .row_scores import Array, RowScores, score_rows


class Scorer:
    """Takes batches of logits with their right classes, and keeps `RowScores`.

    A row may have one right class, or several, any of them right (ReaL, Beyer et al. 2020). A row without one is left
    out. Where the held-out set has fewer classes than the classifier (ImageNet-A and -R have 200 of 1000), accuracy
    among all classes and among those of the set (Hendrycks et al. 2021) are different figures: take a scorer for each.

    Attributes:
        num_logits: C.
        classes: ``(S,)`` int64, the classes that may be answered, ascending; all C, or a subset.
        k: Answers kept a row.
        seen: Rows so far, those without a right class among them.
    """

    def __init__(self, num_logits: int, *, classes: Array | None = None, k: int = 5) -> None:
        """Start without rows.

        Args:
            num_logits: C, the classes that the classifier knows.
            classes: The classes that may be answered; the logits of others are not looked at. ``None`` means all.
            k: Answers to keep a row, at least 1.

        Raises:
            InputError: ``classes`` is empty, holds what is not in 0..C-1, or a class twice; or no logits, or no k.
        """
        self.num_logits, self.k, self.seen = whole("num_logits", num_logits, 1), whole("k", k, 1), 0
        given = np.arange(num_logits) if classes is None else array_of("classes", classes)
        self.classes = np.unique(given)
        if given.dtype.kind not in "iu" or not given.size or self.classes[0] < 0 or self.classes[-1] >= num_logits:
            raise InputError(f"class subset: {shown(given.tolist())} found, expected some of 0..{num_logits - 1}")
        if given.shape != self.classes.shape:
            raise InputError(f"class subset: {shown(given.tolist())} found, expected each class once")
        self._subset = self.classes if len(self.classes) < num_logits else None
        self._parts: list[RowScores] = []
        self._rows: list[Array] = []

    def add(self, logits: Array, labels: Array) -> None:
        """Score a batch.

        Args:
            logits: ``(B, C)``, floating; an array, a list, or a tensor on the CPU.
            labels: ``(B,)`` integers, or ``(B, L)`` with the right classes of each row; -1 stands for none.

        Raises:
            InputError: Not C logits, or another number of rows than labels; or labels that are no whole numbers, or
                a label that is not a class, or not one of ``classes``.
        """
        logits, labels = array_of("logits", logits), array_of("labels", labels)
        if labels.ndim not in (1, 2):
            raise InputError(f"labels: shape {labels.shape} found, expected (B,), or (B, L) with several a row")
        if logits.dtype.kind not in "fiu":
            raise InputError(f"logits: {logits.dtype} found, expected floating numbers")
        if logits.ndim != 2 or logits.shape != (len(labels), self.num_logits):
            raise InputError(f"logits: shape {logits.shape} found, expected {(len(labels), self.num_logits)}")
        if labels.dtype.kind not in "iu":
            raise InputError(f"labels: {labels.dtype} found, expected whole numbers")
        multi_label = labels.ndim == 2
        sets = labels if multi_label else labels[:, None]
        self._check(sets)
        rows = np.flatnonzero((sets >= 0).any(axis=1))
        self._rows.append(rows + self.seen)
        self.seen += len(labels)
        if len(rows) < len(logits):
            logits, sets = logits[rows], sets[rows]
        right = best_of(logits, sets) if multi_label else sets[:, 0]
        self._parts.append(score_rows(logits, right, k=self.k, classes=self._subset, multi_label=multi_label))

    def _check(self, sets: Array) -> None:
        known = np.zeros(self.num_logits + 1, dtype=bool)
        known[self.classes], known[-1] = True, True
        inside = (sets >= -1) & (sets < self.num_logits)
        wrong = np.argwhere(~(inside & known[np.where(inside, sets, -1)]))
        if len(wrong):
            row, place = wrong[0]
            subset = f"the {len(self.classes)} classes of the subset"
            among = f"0..{self.num_logits - 1}" if self._subset is None else subset
            raise InputError(
                f"labels: {sets[row, place]} found in row {self.seen + row}, expected one of {among}; "
                "are these the labels of this classifier?"
            )

    @property
    def rows(self) -> Array:
        """``(N,)`` int64, which of the rows so far have a right class; ascending."""
        return np.concatenate(self._rows) if self._rows else np.arange(0)

    def scores(self) -> RowScores:
        """The scores of all rows so far that have a right class, in order.

        Raises:
            InputError: There is none.
        """
        if not sum(map(len, self._parts)):
            raise InputError(f"labels: none of {self.seen} rows has a right class, expected at least one")
        return RowScores.concatenate(self._parts)

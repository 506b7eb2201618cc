"""What is kept of each row of logits: enough for every metric, and small."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...metrics.ranks import ranks

Array = np.ndarray[Any, Any]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

CHUNK = 2**18
COLUMNS = ("labels", "ranks", "topk_indices", "topk_logits", "topk_scores", "log_probabilities", "sum_of_squares")


@dataclass(frozen=True)
class RowScores:
    """What is kept of N rows of C logits; 80 bytes a row for k = 5.

    A row that holds NaN answers nothing: its rank is that of no class, and it is wrong for every k. A row whose
    softmax is not defined (NaN, plus infinity, or minus infinity only) has NaN where probabilities stand.
    Equal logits are ordered by class index, the lower first.

    Attributes:
        labels: ``(N,)`` int32, the right class; of several right classes the one with the highest logit.
        ranks: ``(N,)`` int32, how many classes come before it; S in a row with NaN.
        topk_indices: ``(N, k)`` int32, the best classes, best first; -1 in a row with NaN.
        topk_logits: ``(N, k)`` float32, or float64 where the logits are.
        topk_scores: ``(N, k)`` float32, their softmax probabilities.
        log_probabilities: ``(N,)`` float64, the natural logarithm of the right class's probability.
        sum_of_squares: ``(N,)`` float32, the sum of the squared probabilities of all classes.
        classes: ``(S,)`` int64, the classes that could be answered, ascending.
        num_logits: C; S where every class could be answered.
        multi_label: Rows may have several right classes.
    """

    labels: Array
    ranks: Array
    topk_indices: Array
    topk_logits: Array
    topk_scores: Array
    log_probabilities: Array
    sum_of_squares: Array
    classes: Array
    num_logits: int
    multi_label: bool

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def answered(self) -> Array:
        """``(N,)`` bool: the row holds no NaN."""
        return self.ranks < len(self.classes)

    @property
    def confidences(self) -> Array:
        """``(N,)`` float32, the highest probability of each row; NaN where there is none."""
        return self.topk_scores[:, 0]

    @property
    def tied(self) -> Array:
        """``(N,)`` bool: another class has the logit of the first answer; not known, so False, for k = 1."""
        shared: Array = np.any(self.topk_logits[:, 1:2] == self.topk_logits[:, :1], axis=1)
        return shared & self.answered

    def correct(self, k: int = 1) -> Array:
        """``(N,)`` bool: the right class is among the k best."""
        return (self.ranks < k) & self.answered

    def __getitem__(self, rows: Array) -> "RowScores":
        """The same of some rows, by indices or by a mask."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in COLUMNS}
        return replace(self, **columns)

    @staticmethod
    def concatenate(parts: "Sequence[RowScores]") -> "RowScores":
        """The rows of all parts, at least one, in order."""
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
        return replace(parts[0], **columns)


def score_rows(
    logits: Array, labels: Array, *, k: int = 5, classes: Array | None = None, multi_label: bool = False
) -> RowScores:
    """Score rows of logits, as many at a time as a cache holds.

    Args:
        logits: ``(N, C)``, floating; float64 is kept, anything else is taken as float32.
        labels: ``(N,)`` integers in 0..C-1, each of them among ``classes``.
        k: Answers to keep a row; all where there are fewer classes.
        classes: ``(S,)`` int64, ascending: the classes that may be answered, as if there were no others. ``None``
            means all C.
        multi_label: Whether rows may have several right classes, of which ``labels`` has the best.

    Returns:
        What is kept of each row.
    """
    num_logits = logits.shape[1]
    if classes is None:
        classes = np.arange(num_logits)
    else:
        logits, labels = logits[:, classes], np.searchsorted(classes, labels)
    logits = np.ascontiguousarray(logits, dtype=np.float64 if logits.dtype == np.float64 else np.float32)
    k, rows = min(k, len(classes)), max(1, CHUNK // len(classes))
    starts = range(0, max(len(logits), 1), rows)
    parts = [_columns(logits[start : start + rows], labels[start : start + rows], k) for start in starts]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    columns["labels"] = classes[columns["labels"]].astype(np.int32)
    columns["topk_indices"] = np.append(classes, -1)[columns["topk_indices"]].astype(np.int32)
    return RowScores(**columns, classes=classes, num_logits=num_logits, multi_label=multi_label)


def _columns(logits: Array, labels: Array, k: int) -> dict[str, Array]:
    indices, best = _highest(logits, k)
    before = ranks(logits, labels)
    indices[before == logits.shape[1]] = -1
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.exp(logits - best[:, :1])
        totals = powers.sum(axis=1)
        own = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0] - best[:, 0]
        return {
            "labels": labels,
            "ranks": before.astype(np.int32),
            "topk_indices": indices,
            "topk_logits": best,
            "topk_scores": (np.exp(best - best[:, :1]) / totals[:, None]).astype(np.float32),
            "log_probabilities": own.astype(np.float64) - np.log(totals.astype(np.float64)),
            "sum_of_squares": (np.vecdot(powers, powers) / totals**2).astype(np.float32),
        }


def _highest(logits: Array, k: int) -> tuple[Array, Array]:
    """Indices and values of the k highest of each row, equal ones by index; for small k far faster than a sort."""
    rest, rows = logits.copy(), np.arange(len(logits))
    indices = np.empty((len(logits), k), dtype=np.int64)
    for place in range(k):
        chosen = indices[:, place] = rest.argmax(axis=1)
        exhausted = rest[rows, chosen] == -np.inf
        rest[rows, chosen] = -np.inf
    indices[exhausted] = np.argsort(-logits[exhausted], axis=1, kind="stable")[:, :k]
    return indices, np.take_along_axis(logits, indices, axis=1)

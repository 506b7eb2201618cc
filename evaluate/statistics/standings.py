"""Several classifiers on the same rows: which is best, and which might be."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.errors import InputError
from ...core.printable import shown
from ...metrics.metric_arguments import same_rows, truths
from ...metrics.paired import Array, PairedDifference, holm, mcnemar, paired_difference
from ...metrics.proportions import Share, wilson

ALPHA = 0.05
_BLOCK = 2**16  # rows whose counts float32 holds exactly


@dataclass(frozen=True)
class Standing:
    """A classifier's place in a table.

    Attributes:
        name: The classifier.
        rank: Its place by accuracy, from 1; equally accurate ones share the first of theirs (1, 2, 2, 4).
        accuracy: Its share of right rows, with its interval.
        behind_best: The best one against it; ``None`` for the first.
        p: McNemar's p-value of that, by Holm over all pairs of the table, as in `significance`; of several equally
            accurate best ones the largest; 1 for these themselves.
        tied: Whether it is the best, or cannot be told from it: ``p`` is at least 0.05.
    """

    name: str
    rank: int
    accuracy: Share
    behind_best: PairedDifference | None
    p: float
    tied: bool


def standings(correct: Mapping[str, Array]) -> list[Standing]:
    """Order classifiers by accuracy and tell which are tied with the best.

    The rows that rank the classifiers also choose the best of them, and any of them may be chosen. So the test is the
    one of all pairs, whose errors are bounded whichever it is: where all classifiers are equally good, in at most 5 %
    of all tables one of them is called worse.

    Args:
        correct: For each classifier ``(N,)`` bool, whether it has the row right; the same rows for all.

    Returns:
        The best first, equally accurate ones in the order given.

    Raises:
        InputError: They are not bool, nor whole numbers that are 0 and 1 only; or not of as many rows; or of none.
    """
    correct = _same_truths(correct)
    p_values, hits = significance(correct), np.array([np.count_nonzero(rows) for rows in correct.values()])
    names, best = list(correct), np.flatnonzero(hits == hits.max(initial=0))
    order = sorted(range(len(names)), key=lambda place: -hits[place])
    found = []
    for place in order:
        rows, p = correct[names[place]], float(p_values[best, place].max())
        behind = None if place == order[0] else paired_difference(correct[names[order[0]]], rows)
        rank = 1 + int(np.count_nonzero(hits > hits[place]))
        found.append(Standing(names[place], rank, wilson(int(hits[place]), len(rows)), behind, p, p >= ALPHA))
    return found


def significance(correct: Mapping[str, Array]) -> Array:
    """McNemar's p-values of all pairs of M classifiers, by Holm over all pairs.

    Args:
        correct: For each classifier ``(N,)`` bool, whether it has the row right; the same rows for all.

    Returns:
        ``(M, M)`` float64, symmetric, in the order given; 1 on the diagonal.

    Raises:
        InputError: As `standings`.
    """
    correct = _same_truths(correct)
    count = len(correct)
    found = np.ones((count, count))
    if count < 2:
        return found
    rows, both = list(correct.values()), np.zeros((count, count), dtype=np.int64)
    for start in range(0, len(rows[0]), _BLOCK):
        block = np.stack([one[start : start + _BLOCK] for one in rows]).astype(np.float32)
        both += (block @ block.T).astype(np.int64)
    alone = np.diag(both)[:, None] - both  # rows that the one has right and the other has not
    one, two = np.triu_indices(count, k=1)
    found[one, two] = found[two, one] = holm(mcnemar(alone[one, two], alone[two, one]))
    return found


def _same_truths(correct: Mapping[str, Array]) -> dict[str, Array]:
    if not isinstance(correct, Mapping):
        raise InputError(f"correct: {shown(correct)} found, expected a mapping of names to arrays")
    found = {f"correct[{name!r}]": truths(f"correct[{name!r}]", rows) for name, rows in correct.items()}
    same_rows(found)
    if any(not len(rows) for rows in found.values()):
        raise InputError("correct: 0 rows found, expected at least one")
    return dict(zip(correct, found.values(), strict=True))

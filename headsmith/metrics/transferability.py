"""How well a linear head will do on features, told from a few hundred rows: a cheap order of backbones."""

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from ..core.counted import counted
from ..core.errors import InputError

Array = np.ndarray[Any, Any]
ROWS = 500
# Of features whose columns have the variance 1 / D, so that the squared norm of a row is 1 on average.
_ALPHAS = 10.0 ** np.arange(-3, 4)


def promise(features: Array, labels: Array, seed: int = 0) -> float:
    """The leave-one-out accuracy of a ridge classifier on some 500 rows, at the best of seven penalties.

    It is a linear probe by cross-validation: the kind of model that a head is, on fewer rows, in the unit in which
    heads are compared. All its folds come from one eigendecomposition (Golub, Heath and Wahba, Technometrics 1979: the
    residual of a row that was left out is its residual divided by one minus its leverage), so that a score takes about
    a tenth of a second. A row that is the only one of its class is left out.

    Args:
        features: ``(N, D)``, numbers of any kind.
        labels: ``(N,)`` integers.
        seed: Decides which rows are taken of more than 500, each class its share and at least two; and which 250
            classes of more.

    Returns:
        The share of the rows that is right, between 0 and 1.

    Raises:
        InputError: Fewer than two classes have two rows or more; features that are not finite.
    """
    rows = _sample(labels, seed)
    kept, targets = np.asarray(features, np.float64)[rows], labels[rows]
    classes, targets = np.unique(targets, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"features: {counted(len(classes), 'class', 'classes')} with two rows or more found, expected at least two"
        )
    if not np.isfinite(kept).all():
        raise InputError("features: NaN or infinite values found, expected finite ones; extract again")
    scaled = StandardScaler().fit_transform(kept) / np.sqrt(kept.shape[1])
    signs = 2.0 * (targets[:, None] == np.arange(len(classes))) - 1
    right = [left_out.argmax(axis=1) == targets for left_out in _left_out_scores(scaled, signs)]
    return float(np.max(np.mean(right, axis=1)))


def _sample(labels: Array, seed: int) -> Array:
    """Rows of classes that have two or more: some `ROWS`, of each class its share, at least two."""
    random = np.random.default_rng(seed)
    classes, counts = np.unique(labels, return_counts=True)
    several = random.permutation(np.flatnonzero(counts > 1))[: ROWS // 2]
    share = min(1.0, ROWS / max(1, counts[several].sum()))
    taken = [
        random.permutation(np.flatnonzero(labels == classes[one]))[: max(2, int(share * counts[one]))]
        for one in several
    ]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *taken]))


def _left_out_scores(rows: Array, targets: Array) -> list[Array]:
    """``(N, C)`` for each penalty: what a ridge regression with an intercept says of each row, fitted to the others."""
    mean = targets.mean(axis=0)
    rows = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows @ rows.T)
    values = values.clip(min=0)
    along = vectors.T @ (targets - mean)
    found = []
    for alpha in _ALPHAS:
        share = values / (values + alpha)
        leverage = (vectors**2 * share).sum(axis=1) + 1 / len(rows)
        fitted = vectors * share @ along + mean
        found.append(targets - (targets - fitted) / (1 - leverage)[:, None])
    return found

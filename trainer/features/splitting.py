"""Rows into train, val and test: by what the source says, class by class, and never a group in two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...core.errors import InputError
from ...core.listed import listed
from .images.samples import SPLITS
from .stratified_split import stratified_split

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Division:
    """How rows are divided.

    Attributes:
        splits: ``(N,)`` int8, index into `SPLITS` for every row.
        rule: The same in words.
        warnings: Classes that stay in train, or that train lacks.
    """

    splits: Array
    rule: str
    warnings: list[CodedWarning]


def divide(
    given: Array, labels: Array, groups: Array | None, class_names: Sequence[str], *, share: float, seed: int
) -> Division:
    """Carve the splits that the source lacks out of its training rows.

    Rows of one group stay together. What is drawn is a share of every class, and of the groups that hold several
    classes; a class too small for that stays in train as a whole. Where all are, it is a share of the groups.

    Args:
        given: ``(N,)`` int8, the split of every row in the source; all 0 (train) where it says none, some in any case.
        labels: ``(N,)`` int64.
        groups: ``(N,)`` int64, equal for rows that belong together, or ``None``.
        class_names: The classes.
        share: Of every class for each missing split.
        seed: Decides what is drawn.

    Raises:
        InputError: A group in two of the source's splits, or too few groups.
    """
    present = [split for code, split in enumerate(SPLITS) if (given == code).any()]
    if groups is not None:
        _check_apart(given, groups)
    missing = [split for split in SPLITS if split not in present]
    rows = np.flatnonzero(given == 0)
    if not missing:
        return Division(given, "the source's own train, val and test", _seen(given, labels, class_names))
    units = np.arange(len(rows)) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    strata = _strata(units, labels[rows])
    order = np.random.default_rng(seed).permutation(len(strata))
    drawn, small = stratified_split(strata, order, len(missing), share)
    if (strata < 0).any() and (drawn < 0).all():
        strata = np.full_like(strata, -1)
        drawn, small = stratified_split(strata, order, len(missing), share)
        if small.size:
            raise InputError(
                f"{len(strata)} different ids or groups in {len(rows)} training rows, too few to carve "
                f"{' and '.join(missing)} out of train: rows that share one stay together; choose other ids or "
                "groups, or give every split yourself"
            )
    splits = given.copy()
    for place, split in enumerate(missing):
        splits[rows[(drawn == place)[units]]] = SPLITS.index(split)
    mixed = strata < 0
    of = "the groups" if mixed.all() else "each class"
    if not mixed.all() and (drawn[mixed] >= 0).any():
        of += " and of the groups of several classes"
    together = "" if groups is None else ", no group in two splits"
    rule = (
        f"{' and '.join(missing)} carved from train: {share:.2%} of {of}, at least 1, drawn with seed {seed}{together}"
    )
    left = set(labels[rows[(drawn >= 0)[units]]].tolist())
    kept = [f"{class_names[label]!r}" for label in small if label >= 0 and label not in left]
    message = f"too few rows to carve: kept in train as a whole: class {listed(kept)}"
    warnings = [CodedWarning("kept-in-train", message)] if kept else []
    return Division(splits, rule, warnings + _seen(splits, labels, class_names))


def _check_apart(given: Array, groups: Array) -> None:
    pairs = np.unique(np.stack([groups, given]), axis=1)
    names, counts = np.unique(pairs[0], return_counts=True)
    if (counts > 1).any():
        row = int(np.flatnonzero(groups == names[counts > 1][0])[0])
        raise InputError(
            f"{(counts > 1).sum()} groups are in more than one split of the source, the first with row {row}; "
            "expected none, so take them out of all but one"
        )


def _strata(units: Array, labels: Array) -> Array:
    """The class of every unit, or -1 where it has rows of several classes."""
    strata = np.zeros(units.max() + 1, np.int64)
    strata[units] = labels
    strata[units[strata[units] != labels]] = -1
    return strata


def _seen(splits: Array, labels: Array, class_names: Sequence[str]) -> list[CodedWarning]:
    trained = set(np.unique(labels[splits == 0]).tolist())
    warnings = []
    for code, split in enumerate(SPLITS[1:], 1):
        unseen = sorted(set(np.unique(labels[splits == code]).tolist()) - trained)
        if unseen:
            names = listed([repr(class_names[label]) for label in unseen])
            message = f"{split} has classes without a training row, which no head can answer: {names}"
            warnings.append(CodedWarning("unanswerable", message))
    return warnings

"""Copies of pictures within splits, across splits and across classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.printable import printable
from .images.samples import SPLITS, listed

Array = np.ndarray[Any, Any]
# How many copies there are; of a few their ids, and those of the first images that show the same.
Pairs = tuple[int, list[tuple[str, str]]]
NAMED = 3
# How the lines begin that tell of them, for who tells it in another way.
ACROSS, WITHIN = "images are copies of images of an earlier split", "images are copies of an earlier one of the split"


@dataclass(frozen=True)
class Shown:
    """The images of a split, one row each.

    Attributes:
        ids: N sample ids.
        labels: ``(N,)`` int64.
        pictures: N hashes of the decoded pictures.
    """

    ids: pa.StringArray
    labels: Array
    pictures: pa.StringArray

    def where(self, mark: Array) -> "Shown":
        """Those that are marked."""
        return Shown(self.ids.filter(pa.array(mark)), self.labels[mark], self.pictures.filter(pa.array(mark)))


@dataclass(frozen=True)
class Copies:
    """What was found; pairs are a copy and the first image that shows the same, of which a few are named.

    Attributes:
        rows: Images by split.
        within: By split, how many images repeat an earlier one of it, and pairs.
        across: By split, how many images repeat one of an earlier split, and pairs.
        whole: By split, the classes all of whose images do so: labels, and how many images.
        conflicts: How many pictures stand in several classes, and for a few of them ids and labels.
    """

    rows: dict[str, int]
    within: dict[str, Pairs]
    across: dict[str, Pairs]
    whole: dict[str, list[tuple[int, int]]]
    conflicts: tuple[int, list[list[tuple[str, int]]]]

    def record(self, class_names: list[str]) -> dict[str, Any]:
        """As JSON values."""
        count, groups = self.conflicts
        named = [[[name, class_names[label]] for name, label in group] for group in groups]
        found = {"within": _counted(self.within), "across": _counted(self.across)}
        for split, entry in found["across"].items():
            entry["classes"] = [[class_names[label], count] for label, count in self.whole[split]]
        return found | {"conflicts": {"pictures": count, "first": named}}

    def warnings(self, class_names: list[str]) -> list[str]:
        """In words, one line each."""
        lines = [
            f"{split}: {count} of {self.rows[split]} {ACROSS} ({_pairs(pairs, count)})"
            f"{all_of([(class_names[label], images) for label, images in self.whole[split]])}, so accuracies may be "
            "too high; take them out of all splits but one"
            for split, (count, pairs) in self.across.items()
        ]
        lines += [
            f"{split}: {count} of {self.rows[split]} {WITHIN} ({_pairs(pairs, count)})"
            for split, (count, pairs) in self.within.items()
        ]
        count, groups = self.conflicts
        if count:
            named = "; ".join(_classes(group, class_names) for group in groups) + "; ..." * (count > len(groups))
            lines.append(
                f"label conflict: {count} pictures stand in more than one class ({named}); keep the right ones"
            )
        return lines


def _counted(found: dict[str, Pairs]) -> dict[str, Any]:
    return {split: {"images": n, "first": [list(pair) for pair in pairs]} for split, (n, pairs) in found.items()}


def _classes(group: list[tuple[str, int]], class_names: list[str]) -> str:
    return " and ".join(f"{printable(name)} in {class_names[label]!r}" for name, label in group)


def _pairs(pairs: list[tuple[str, str]], count: int) -> str:
    return ", ".join(f"{printable(one)} = {printable(other)}" for one, other in pairs) + ", ..." * (count > len(pairs))


def whole_classes(labels: Array, leaked: Array, classes: int) -> list[tuple[int, int]]:
    """The classes of a split all of whose rows are copies of rows elsewhere: labels, and how many rows.

    Args:
        labels: ``(N,)`` integers; those outside of 0..C-1 are of no class.
        leaked: ``(N,)`` bool, which rows are copies.
        classes: C.
    """
    known = (labels >= 0) & (labels < classes)
    held, copied = (np.bincount(labels[mark], minlength=classes) for mark in (known, known & leaked))
    return [(label, int(held[label])) for label in np.flatnonzero((held > 0) & (copied == held)).tolist()]


def all_of(classes: Sequence[tuple[str, int]]) -> str:
    """Such classes in words, to go on with a sentence; nothing where there are none."""
    named = listed([f"{name!r} ({count})" for name, count in classes])
    return f", among them all of {named}" if classes else ""


def find_copies(splits: Mapping[str, Shown]) -> Copies:
    """Compare all images of a data set by their pictures.

    Args:
        splits: The images by split.
    """
    order = [split for split in SPLITS if split in splits]
    ids = pa.concat_arrays([splits[split].ids for split in order])
    labels = np.concatenate([splits[split].labels for split in order])
    place = np.repeat(np.arange(len(order)), [len(splits[split].labels) for split in order])
    coded = pa.concat_arrays([splits[split].pictures for split in order]).dictionary_encode()
    group = coded.indices.to_numpy().astype(np.int64)
    first = np.full(len(coded.dictionary), len(group))
    np.minimum.at(first, group, np.arange(len(group)))
    again = group * len(order) + place
    seen = np.unique(again, return_index=True)[1]
    repeats = np.ones(len(group), bool)
    repeats[seen] = False
    leaks = place[first[group]] < place

    def pairs(mark: Array) -> Pairs:
        rows = np.flatnonzero(mark)
        return len(rows), [(ids[row].as_py(), ids[first[group[row]]].as_py()) for row in rows[:NAMED].tolist()]

    by_split = {split: place == number for number, split in enumerate(order)}
    clashing = np.unique(group[labels != labels[first[group]]])
    named = [
        [(ids[row].as_py(), int(labels[row])) for row in _one_a_class(np.flatnonzero(group == one), labels)]
        for one in clashing[:NAMED].tolist()
    ]
    return Copies(
        rows={split: int(mark.sum()) for split, mark in by_split.items()},
        within={split: pairs(repeats & mark) for split, mark in by_split.items() if (repeats & mark).any()},
        across={split: pairs(leaks & mark) for split, mark in by_split.items() if (leaks & mark).any()},
        whole={
            split: whole_classes(labels[mark], leaks[mark], 1 + int(labels.max()))
            for split, mark in by_split.items()
            if (leaks & mark).any()
        },
        conflicts=(len(clashing), named),
    )


def _one_a_class(rows: Array, labels: Array) -> list[int]:
    found: list[int] = rows[np.sort(np.unique(labels[rows], return_index=True)[1])].tolist()
    return found[:NAMED]

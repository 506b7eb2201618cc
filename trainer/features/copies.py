"""Copies of pictures within splits, across splits and across classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.coded_warnings import CodedWarning
from ...core.counted import counted
from ...core.listed import listed
from ...core.printable import printable
from ...core.records import OPTIONAL
from .images.samples import SPLITS

Array = np.ndarray[Any, Any]
NAMED = 3


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
class RepeatedImages:
    """Images of a split that show what an earlier image shows.

    Attributes:
        images: How many.
        first: A few of them: their ids, and those of the first images (of the split, or of all) that show the same.
        classes: The classes all of whose images in the split are so, and how many images; ``None`` where that is not
            asked, or by a version that did not.
    """

    images: int
    first: list[tuple[str, str]]
    classes: list[tuple[str, int]] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Conflicts:
    """Pictures that stand in several classes.

    Attributes:
        pictures: How many.
        first: Of a few of them the ids and classes of images that show them.
    """

    pictures: int
    first: list[list[tuple[str, str]]]


@dataclass(frozen=True)
class Copies:
    """What was found.

    Attributes:
        within: By split, images that repeat an earlier one of it.
        across: By split, images that repeat one of an earlier split.
        conflicts: Pictures in several classes.
    """

    within: dict[str, RepeatedImages]
    across: dict[str, RepeatedImages]
    conflicts: Conflicts

    def warnings(self, images: Mapping[str, int]) -> list[CodedWarning]:
        """In words.

        Args:
            images: How many there are, by split.
        """
        found = [
            CodedWarning(
                "leak",
                f"{split}: {one.images} of {images[split]} images are copies of images of an earlier split "
                f"({_pairs(one)}){all_of(one.classes or ())}, so accuracies may be too high; take them out of all "
                "splits but one",
            )
            for split, one in self.across.items()
        ]
        found += [
            CodedWarning(
                "copies",
                f"{split}: {one.images} of {images[split]} images are copies of an earlier one of the split "
                f"({_pairs(one)})",
            )
            for split, one in self.within.items()
        ]
        if count := self.conflicts.pictures:
            named = "; ".join(map(_classes, self.conflicts.first)) + "; ..." * (count > len(self.conflicts.first))
            text = (
                f"{counted(count, 'picture is', 'pictures are')} in more than one class ({named}); keep the right ones"
            )
            found.append(CodedWarning("conflicts", text))
        return found


def _classes(group: Sequence[tuple[str, str]]) -> str:
    return " and ".join(f"{printable(name)} in {label!r}" for name, label in group)


def _pairs(found: RepeatedImages) -> str:
    pairs = ", ".join(f"{printable(one)} = {printable(other)}" for one, other in found.first)
    return pairs + ", ..." * (found.images > len(found.first))


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


def find_copies(splits: Mapping[str, Shown], class_names: Sequence[str]) -> Copies:
    """Compare all images of a data set by their pictures.

    Args:
        splits: The images by split.
        class_names: What their labels are indices into.
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
    _, seen, of_split = np.unique(again, return_index=True, return_inverse=True)
    repeats = np.ones(len(group), bool)
    repeats[seen] = False
    leaks = place[first[group]] < place

    def repeated(mark: Array, earlier: Array, classes: list[tuple[str, int]] | None = None) -> RepeatedImages:
        rows = np.flatnonzero(mark)
        pairs = [(ids[row].as_py(), ids[earlier[row]].as_py()) for row in rows[:NAMED].tolist()]
        return RepeatedImages(len(rows), pairs, classes)

    def whole(mark: Array) -> list[tuple[str, int]]:
        found = whole_classes(labels[mark], leaks[mark], len(class_names))
        return [(class_names[label], images) for label, images in found]

    of_split, of_all = seen[of_split], first[group]
    by_split = {split: place == number for number, split in enumerate(order)}
    clashing = np.unique(group[labels != labels[first[group]]])
    named = [
        [(ids[row].as_py(), class_names[labels[row]]) for row in _one_a_class(np.flatnonzero(group == one), labels)]
        for one in clashing[:NAMED].tolist()
    ]
    return Copies(
        within={
            split: repeated(repeats & mark, of_split) for split, mark in by_split.items() if (repeats & mark).any()
        },
        across={
            split: repeated(leaks & mark, of_all, whole(mark))
            for split, mark in by_split.items()
            if (leaks & mark).any()
        },
        conflicts=Conflicts(len(clashing), named),
    )


def _one_a_class(rows: Array, labels: Array) -> list[int]:
    found: list[int] = rows[np.sort(np.unique(labels[rows], return_index=True)[1])].tolist()
    return found[:NAMED]

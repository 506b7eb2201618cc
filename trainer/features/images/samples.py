"""What a source of images lists, and how samples are divided into train, val and test."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from ....core.errors import InputError
from ....core.records import OPTIONAL
from ..stratified_split import stratified_split

SPLITS = ("train", "val", "test")
SEED = 0
HELD_OUT_SHARE = 0.1
_SYNONYMS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


@dataclass(frozen=True)
class Sample:
    """One labelled image.

    Attributes:
        id: The path relative to the folder, or ``split/row`` in a `datasets` source.
        label: Index into the class names.
        split: ``train``, ``val`` or ``test``.
    """

    id: str
    label: int
    split: str


@dataclass(frozen=True)
class Unreadable:
    """A sample that was left out.

    Attributes:
        id: Its id.
        reason: Why it could not be read.
    """

    id: str
    reason: str


class ImageColumns(TypedDict, total=False):
    """The columns of a `datasets` source with images and labels; ``None`` where there is only one that it can be."""

    image_column: str | None
    label_column: str | None


@dataclass(frozen=True)
class ImageSource:
    """Where images are from: the arguments of `open_images` that open them again.

    Attributes:
        source: A folder, or the name of a data set on the hub.
        image_column: Column with the images; ``None`` of class folders.
        label_column: Column with the labels; ``None`` of class folders.
        splits: ``False`` where all of them are held out.
        together: The splits, by id, of images that follow copies of theirs or take the places of unreadable ones;
            ``None`` where copies go their own ways.
    """

    source: str
    image_column: str | None = field(default=None, metadata=OPTIONAL)
    label_column: str | None = field(default=None, metadata=OPTIONAL)
    splits: bool | None = field(default=None, metadata=OPTIONAL)
    together: dict[str, str] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Listing:
    """All samples of a source as they were found, before anything is divided.

    Attributes:
        source: Where it was found.
        class_names: Name of every class; a label is an index into them.
        samples: Grouped by split, in a fixed order.
        divided: Whether the source itself says which split a sample is in; else all are in ``train``.
        content: From a sample to its file or its encoded bytes.
        size: From a sample to the number of its bytes, without reading them; ``None`` where there are none.
    """

    source: ImageSource
    class_names: list[str]
    samples: list[Sample]
    divided: bool
    content: Callable[[Sample], Path | bytes]
    size: Callable[[Sample], int | None]


def split_called(name: str) -> str | None:
    """The split that a folder or a `datasets` split of this name holds (``validation`` is ``val``), or ``None``."""
    return _SYNONYMS.get(name.lower())


def by_split(names: Iterable[str], where: str) -> dict[str, str]:
    """Map split to the source's own name for it, in the order train, val, test; other names are left out.

    Raises:
        InputError: Two names mean one split.
    """
    found: dict[str, str] = {}
    for name in sorted(names):
        split = split_called(name)
        if split in found:
            raise InputError(f"{where}: {found[split]!r} and {name!r} both mean {split}; keep one of them")
        if split is not None:
            found[split] = name
    return {split: found[split] for split in SPLITS if split in found}


def carve(
    samples: Sequence[Sample],
    class_names: Sequence[str],
    missing: Sequence[str],
    same: Mapping[str, str] | None = None,
) -> list[Sample]:
    """Move a tenth of every training class, at least one image, into each missing split.

    Which ones is decided by the rank of a hash of seed and id: the same on every machine and at every opening, and an
    added image moves few others. Copies of a picture count once, and go where the first of them in this order goes. A
    picture that stands in several classes stays in train, and so does a class with too few different ones.

    Args:
        samples: As the source lists them.
        class_names: The classes.
        missing: The splits to make.
        same: By id, what copies of one picture share; others need no entry.

    Raises:
        InputError: A class has too few images to leave one for each split.
    """
    training = [sample for sample in samples if sample.split == "train"]
    _check_enough(Counter(sample.label for sample in training), class_names, missing)
    return move(samples, drawn(training, missing, same or {}))


def drawn(training: Sequence[Sample], missing: Sequence[str], same: Mapping[str, str]) -> dict[str, str]:
    """Which training images `carve` moves: the new splits by id."""
    units: dict[tuple[str | None, str], list[Sample]] = defaultdict(list)
    for sample in sorted(training, key=lambda sample: rank(sample.id)):
        shared = same.get(sample.id)
        units[shared, "" if shared else sample.id].append(sample)
    of_one_class = [unit for unit in units.values() if len({sample.label for sample in unit}) == 1]
    labels = np.array([unit[0].label for unit in of_one_class], np.int64)
    places, _ = stratified_split(labels, np.arange(len(labels)), len(missing), HELD_OUT_SHARE)
    return {
        sample.id: missing[-1 - place]
        for unit, place in zip(of_one_class, places.tolist(), strict=True)
        if place >= 0
        for sample in unit
    }


def move(samples: Sequence[Sample], moved: Mapping[str, str]) -> list[Sample]:
    """Put samples into other splits, and sort them by split.

    Args:
        samples: In the order of the result, within a split.
        moved: The new splits by id.
    """
    divided = [replace(sample, split=moved.get(sample.id, sample.split)) for sample in samples]
    return sorted(divided, key=lambda sample: SPLITS.index(sample.split))


def rank(name: str) -> bytes:
    """By what the images of a class are ordered before splits are carved."""
    return hashlib.sha256(f"{SEED}:{name}".encode()).digest()


def _check_enough(counts: Mapping[int, int], class_names: Sequence[str], missing: Sequence[str]) -> None:
    needed = 1 + len(missing)
    small = [f"{class_names[label]!r} ({count})" for label, count in counts.items() if count < needed]
    if small:
        raise InputError(
            f"too few images to carve {' and '.join(missing)} out of train: class {listed(small)}, expected at least "
            f"{needed} each; add images, or divide the images into train, val and test yourself"
        )


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, comma-separated, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""What a source of images lists, and how samples are divided into train, val and test."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ....core.errors import InputError

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
class Listing:
    """All samples of a source as they were found, before anything is divided.

    Attributes:
        source: The keyword arguments of `open_images` that find this source again.
        class_names: Name of every class; a label is an index into them.
        samples: Grouped by split, in a fixed order.
        divided: Whether the source itself says which split a sample is in; else all are in ``train``.
        content: From a sample to its file or its encoded bytes.
    """

    source: dict[str, str]
    class_names: list[str]
    samples: list[Sample]
    divided: bool
    content: Callable[[Sample], Path | bytes]


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


def carve(samples: Sequence[Sample], class_names: Sequence[str], missing: Sequence[str]) -> list[Sample]:
    """Move a tenth of every training class, at least one image, into each missing split.

    Which ones is decided by the rank of a hash of seed and id: the same on every machine and at every opening, and an
    added image moves few others.

    Raises:
        InputError: A class has too few images to leave one for each split.
    """
    groups: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.split == "train":
            groups[sample.label].append(sample)
    _check_enough(groups, class_names, missing)
    moved: dict[str, str] = {}
    for group in groups.values():
        ranked = sorted(group, key=_rank)
        held_out = max(1, round(HELD_OUT_SHARE * len(group)))
        for place, split in enumerate(reversed(missing)):
            moved |= {sample.id: split for sample in ranked[place * held_out : (place + 1) * held_out]}
    divided = [replace(sample, split=moved.get(sample.id, sample.split)) for sample in samples]
    return sorted(divided, key=lambda sample: SPLITS.index(sample.split))


def _rank(sample: Sample) -> bytes:
    return hashlib.sha256(f"{SEED}:{sample.id}".encode()).digest()


def _check_enough(groups: dict[int, list[Sample]], class_names: Sequence[str], missing: Sequence[str]) -> None:
    needed = 1 + len(missing)
    small = [f"{class_names[label]!r} ({len(group)})" for label, group in groups.items() if len(group) < needed]
    if small:
        raise InputError(
            f"too few images to carve {' and '.join(missing)} out of train: class {listed(small)}, expected at least "
            f"{needed} each; add images, or divide the images into train, val and test yourself"
        )


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, comma-separated, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""How splits that a source of images does not have are carved out of its training images."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ....core.errors import InputError
from ....core.listed import listed
from ..stratified_split import stratified_split
from .samples import SPLITS, Sample

SEED = 0
HELD_OUT_SHARE = 0.1


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

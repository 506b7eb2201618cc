"""What is divided anew once pictures are known: copies stay together, and unreadable images leave no gap."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError
from ....core.listed import listed
from ....core.printable import printable, short
from ..images.carving import HELD_OUT_SHARE, drawn, rank
from ..images.image_set import FILLED, ImageSet
from ..images.picture_identity import followers
from ..images.samples import Sample, Unreadable
from ..stratified_split import held_out_counts

Moved = dict[str, str]
Labels = np.ndarray[Any, np.dtype[np.int64]]


def redivide(
    images: ImageSet, tables: Mapping[str, pa.Table], unreadable: Sequence[str]
) -> tuple[ImageSet, Moved, list[CodedWarning]]:
    """Divide images anew where splits were carved out of train, as their pixels ask for it.

    Copies that differ in bytes, but not in pixels, go into one split. A class with no more different pictures than
    splits, or that would have less than half of them left in train, is carved again by its pictures; not where a split
    would have no image left: there copies are told. The places of unreadable images in the splits that were carved go
    to the next training images of their class, so that a tenth of those that can be read, at least one, is held out;
    not where there are too few of them.

    Args:
        images: As they were divided before they were read.
        tables: By split, the rows of those that can be read.
        unreadable: The ids of the others.

    Returns:
        The images so divided, the new splits of those that move, by id, and what was done, as warnings.
    """
    if not images.carved:
        return images, {}, []
    together = _together(images, tables)
    filled = _filled(images, tables, unreadable, together)
    if together:
        images = images.moved(together)
    if filled:
        images = images.moved(together | filled, FILLED)
    return images, together | filled, _warnings(filled)


def _together(images: ImageSet, tables: Mapping[str, pa.Table]) -> Moved:
    ids = {split: table["id"].to_pylist() for split, table in tables.items()}
    pictures = {split: table["picture"].to_pylist() for split, table in tables.items()}
    own = ("train", *images.carved)
    at = {name: split for split in own for name in ids[split]}
    shows = {name: picture for split in own for name, picture in zip(ids[split], pictures[split], strict=True)}
    training = [replace(one, split="train") for one in images.samples if one.id in at]
    moved = followers(ids, pictures, own)
    few = _of_few_pictures(training, at | moved, shows, len(images.carved))
    if few:
        splits = drawn(training, images.carved, shows)
        again = {name: splits.get(name, "train") for name, picture in shows.items() if picture in few}
        moved = {name: split for name, split in (moved | again).items() if split != at[name]}
    counts = Counter(moved.get(name, split) for split, names in ids.items() for name in names)
    return moved if all(counts[split] for split in ids) else {}


def _of_few_pictures(
    training: Sequence[Sample], places: Mapping[str, str], shows: Mapping[str, str], carved: int
) -> set[str]:
    """The pictures of classes with copies that have too few different ones, or less than half of them left in train."""
    by_label: dict[int, list[str]] = defaultdict(list)
    for one in training:
        by_label[one.label].append(one.id)
    found: set[str] = set()
    for names in by_label.values():
        different = {shows[name] for name in names}
        left = {shows[name] for name in names if places[name] == "train"}
        if len(different) < len(names) and (len(different) <= carved or 2 * len(left) < len(different)):
            found |= different
    return found


def _filled(images: ImageSet, tables: Mapping[str, pa.Table], unreadable: Sequence[str], moved: Moved) -> Moved:
    """The training images that take the places of unreadable ones: by rank, with their copies, one class at a time."""
    gone = set(unreadable)
    lost = Counter((one.label, one.split) for one in images.samples if one.id in gone and one.split in images.carved)
    if not lost:
        return {}
    shown: dict[str, set[tuple[str, int, str]]] = defaultdict(set)  # id, label and split of what shows a picture
    for split in ("train", *images.carved):
        columns = (tables[split][name].to_pylist() for name in ("picture", "id", "label"))
        for picture, name, label in zip(*columns, strict=True):
            shown[picture].add((name, label, moved.get(name, split)))
    places: dict[int, dict[str, list[list[str]]]] = defaultdict(lambda: defaultdict(list))
    for group in shown.values():
        labels, splits = {label for _, label, _ in group}, {split for _, _, split in group}
        if len(labels) == len(splits) == 1:
            places[labels.pop()][splits.pop()].append(sorted((name for name, _, _ in group), key=rank))
    filled: Moved = {}
    for label in sorted({label for label, _ in lost}):
        by_split = places[label]
        pictures = np.array(sum(map(len, by_split.values())))
        wanted = int(held_out_counts(pictures, len(images.carved), HELD_OUT_SHARE))
        waiting = sorted(by_split["train"], key=lambda names: rank(names[0]))
        for split in reversed(images.carved):
            count = min(lost[label, split], wanted - len(by_split[split]), len(waiting) - 1)
            for _ in range(count):
                filled |= dict.fromkeys(waiting.pop(0), split)
    return filled


def _warnings(filled: Moved) -> list[CodedWarning]:
    by_split: dict[str, list[str]] = defaultdict(list)
    for name, split in filled.items():
        by_split[split].append(printable(name))
    return [
        CodedWarning(
            "filled", f"{split}: {len(names)} training images took the places of unreadable ones ({listed(names, 3)})"
        )
        for split, names in by_split.items()
    ]


def check_left(labels: Mapping[str, Labels], images: ImageSet, unreadable: Sequence[Unreadable]) -> None:
    """Refuse what the unreadable images leave useless.

    Args:
        labels: By split, ``(N,)`` labels of the images that can be read.
        images: All of them.
        unreadable: The others.

    Raises:
        InputError: A split is empty, or a class has no training image.
    """
    names = listed([f"{one.id} ({one.reason})" for one in unreadable], 3)
    column = images.source.image_column
    place = "" if column is None else f" in column {short(column)}"
    remedy = f"is readable{place}: {names}; repair them or add others"
    lost = sorted({sample.label for sample in images.samples} - set(labels["train"].tolist()))
    if lost:
        classes = listed([repr(images.class_names[label]) for label in lost])
        raise InputError(f"no training image of class {classes} {remedy}")
    for split, one in labels.items():
        if not len(one):
            raise InputError(f"no image of {split} {remedy}")

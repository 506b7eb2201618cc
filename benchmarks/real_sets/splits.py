"""Train, val and test of items, without a leak: by source, or by group. Nothing is drawn: hashes of names decide."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

NAMES = ("train", "val", "test")


@dataclass(frozen=True)
class Item:
    """A sample that is not computed yet: its class, where it is from, what it is called there, and what makes it."""

    label: str
    source: str
    name: str
    content: Any = None


Splits = Mapping[str, list[Item]]


def rank(*parts: str) -> str:
    """A text that orders items as by chance, the same everywhere."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def by_source(
    items: Iterable[Item], val: Collection[str], test: Collection[str], *, least: int, classes: int
) -> dict[str, list[Item]]:
    """Hold whole sources out.

    Args:
        items: All there is.
        val: The sources of val.
        test: The sources of test; all others are train.
        least: A class has so many train items or is left out, as is one that val or test lacks.
        classes: Keep so many classes, those with the most train items.

    Returns:
        The items of each split, in the order of class, source and name.

    Raises:
        ValueError: A source is held out twice, or a split is empty.
    """
    if set(val) & set(test):
        raise ValueError(f"sources: {set(val) & set(test)} found in val and in test, expected in one")
    found: dict[str, list[Item]] = {name: [] for name in NAMES}
    for item in items:
        found["val" if item.source in val else "test" if item.source in test else "train"].append(item)
    counts = {name: Counter(item.label for item in rows) for name, rows in found.items()}
    whole = [
        label
        for label, n in counts["train"].items()
        if n >= least and label in counts["val"] and label in counts["test"]
    ]
    kept = set(sorted(whole, key=lambda label: (-counts["train"][label], rank(label)))[:classes])
    return _ordered({name: [item for item in rows if item.label in kept] for name, rows in found.items()})


def by_group(
    items: Iterable[Item], group: Callable[[Item], str], *, held_out: float, least: int
) -> dict[str, list[Item]]:
    """Hold whole groups out, chosen by a hash of their names.

    Args:
        items: All there is.
        group: What must not be divided.
        held_out: The share of the groups for val, and for test.
        least: A class has so many items in each split or is left out.

    Returns:
        The items of each split, in the order of class, source and name.

    Raises:
        ValueError: A split is empty.
    """
    found: dict[str, list[Item]] = {name: [] for name in NAMES}
    for item in items:
        place = int(rank("group", group(item))[:12], 16) / 16**12
        found["val" if place < held_out else "test" if place < 2 * held_out else "train"].append(item)
    counts = [Counter(item.label for item in rows) for rows in found.values()]
    kept = {label for label in counts[0] if all(count[label] >= least for count in counts)}
    return _ordered({name: [item for item in rows if item.label in kept] for name, rows in found.items()})


def _ordered(splits: dict[str, list[Item]]) -> dict[str, list[Item]]:
    for name, rows in splits.items():
        if not rows:
            raise ValueError(f"{name}: no items found, expected some; are the sources there?")
        rows.sort(key=lambda item: (item.label, item.source, item.name))
    return splits


def thinned(splits: Splits, most: Mapping[str, int]) -> dict[str, list[Item]]:
    """At most so many items of a class in each split, chosen by a hash of source and name."""
    kept: dict[str, list[Item]] = {}
    for split, rows in splits.items():
        classes = defaultdict(list)
        for item in rows:
            classes[item.label].append(item)
        chosen = [
            item
            for group in classes.values()
            for item in sorted(group, key=lambda item: rank(item.label, item.source, item.name))[: most[split]]
        ]
        kept[split] = sorted(chosen, key=lambda item: (item.label, item.source, item.name))
    return kept


def without_copies(splits: Splits, content: Callable[[Item], Hashable]) -> dict[str, list[Item]]:
    """Leave out what an item of an earlier split, or of the same class before it, is equal to.

    Equal items of several classes of one split stay: they are what top-5 is for.
    """
    seen: set[Hashable] = set()
    kept: dict[str, list[Item]] = {}
    for split in NAMES:
        mine: set[tuple[str, Hashable]] = set()
        kept[split] = []
        for item in splits[split]:
            key = content(item)
            if key not in seen and (item.label, key) not in mine:
                kept[split].append(replace(item))
                mine.add((item.label, key))
        seen |= {key for _, key in mine}
    return kept

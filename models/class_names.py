"""The names by which the outputs of pretrained classifiers are known, and how classes are found by name.

The names of C outputs are columns: every column is one way to name all of them, a tuple of C names.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InputError, near

IMAGENET = "imagenet-1k"
ClassNames = tuple[tuple[str, ...], ...]


def imagenet_names(subset: str | None) -> ClassNames | None:
    """The classes of ImageNet, or of a larger set around it, as timm knows them.

    Args:
        subset: timm's name of the set, e.g. ``imagenet-1k``; ``None`` where it is not known.

    Returns:
        WordNet ids (``n01440764``), all synonyms (``tench, Tinca tinca``), and the first synonym (``tench``).
    """
    if subset is None:
        return None
    if subset == IMAGENET:
        return _imagenet()
    from timm.data.imagenet_info import ImageNetInfo

    info = ImageNetInfo(subset)
    return _columns(info.label_names(), list(info.label_descriptions()))


@cache
def _imagenet() -> ClassNames:
    """The usual 1,000 classes, kept here because timm imports torch."""
    lines = (Path(__file__).parent / "manifests" / "imagenet-1k.txt").read_text(encoding="utf-8").splitlines()
    ids, synonyms = zip(*(line.split(" ", maxsplit=1) for line in lines), strict=True)
    return _columns(ids, synonyms)


def _columns(ids: Sequence[str], synonyms: Sequence[str]) -> ClassNames:
    return tuple(ids), tuple(synonyms), tuple(names.split(", ")[0] for names in synonyms)


def torchvision_names(categories: Sequence[str]) -> ClassNames:
    """ImageNet's classes as torchvision names them (``tench``), with those of `imagenet_names`."""
    return tuple(categories), *(imagenet_names(IMAGENET) or ())


def find_classes(wanted: Sequence[str], known: ClassNames) -> list[int | None]:
    """Which output bears the name of each class, in the column that knows most of them.

    A name that stands more than once in its column finds nothing.

    Args:
        wanted: Class names, each once.
        known: The names of the outputs.

    Returns:
        For each class the index of its output, or ``None``.
    """
    columns = []
    for names in known:
        count = Counter(names)
        index = {name: position for position, name in enumerate(names) if count[name] == 1}
        columns.append([index.get(name) for name in wanted])
    return max(columns, key=lambda found: len(found) - found.count(None))


def match_classes(wanted: Sequence[str], known: ClassNames, where: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The output of each class, by whichever of the outputs' names knows most of the classes, whatever their order.

    Args:
        wanted: Class names of a data set, each once.
        known: The names of the outputs.
        where: What holds the data, for errors.

    Returns:
        ``(len(wanted),)`` int64, no two alike. Where these are fewer than the outputs, accuracy among them alone is
        ``Scorer(classes=...)`` of this.

    Raises:
        InputError: A class that no output bears; classes that are numbers, whose order nobody knows.
    """
    found = find_classes(wanted, known)
    unknown = [name for name, output in zip(wanted, found, strict=True) if output is None]
    if not unknown:
        return np.array(found, dtype=np.int64)
    if all(name.isdecimal() for name in wanted) and not known[0][0].isdecimal():
        span = f"{min(map(int, wanted))}..{max(map(int, wanted))}"
        raise InputError(
            f"{where}: its classes are the numbers {span}, the classifier's labels are names such as {known[0][0]!r}; "
            "ids of ILSVRC's devkit (1..1000) and the places of sorted WordNet ids (0..999) are different orders, so "
            "name the classes"
        )
    hint = near(unknown[0], {name for column in known for name in column})
    hint = hint or f"; its labels are {', '.join(repr(column[0]) for column in known)}, ..."
    raise InputError(
        f"{where}: {len(unknown)} of its {len(wanted)} classes are not among the {len(known[0])} labels of the "
        f"classifier, such as {unknown[0]!r}{hint}"
    )

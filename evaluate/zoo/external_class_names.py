"""How the outputs of a classifier are called."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ...core.errors import InputError
from ...core.text_file import read_lines
from ...export.metadata import check_labels
from ...models.class_names import IMAGENET, ClassNames, imagenet_names


def read_names(labels: list[str] | str, folder: Path, where: str) -> ClassNames:
    """The names of outputs.

    Args:
        labels: Names, a text file with one a line, or timm's name of a set of classes.
        folder: Where a relative path starts.
        where: What says them, for errors; a text file is named itself.

    Raises:
        InputError: No such file or set, or names that cannot be told apart.
    """
    if isinstance(labels, str):
        if labels.startswith("imagenet"):
            return _set_names(labels, where)
        if not (folder / labels).exists():
            raise InputError(f"{where}: labels {labels}: no such file; expected one with a name a line, or {IMAGENET}")
        where = str(folder / labels)
        labels = read_lines(where)
    return columns(check_labels(list(labels), len(labels), where))


def columns(labels: Sequence[str]) -> ClassNames:
    """Labels with what else these classes are called, where they are ImageNet's, in any order.

    They are ImageNet's where all of them are WordNet ids, or all of them are names that mean one class each.
    """
    known = imagenet_names(IMAGENET) or ()
    for column in known:
        places = {name: place for place, name in enumerate(column) if column.count(name) == 1}
        if all(label in places for label in labels):
            others = [tuple(other[places[label]] for label in labels) for other in known if other is not column]
            return tuple(labels), *others
    return (tuple(labels),)


@cache
def _wordnet_ids() -> dict[str, str]:
    """The WordNet id of every name that means one class of ImageNet."""
    found: dict[str, str] = {}
    known = imagenet_names(IMAGENET) or ()
    for column in reversed(known):
        count = Counter(column)
        found |= {name: known[0][place] for place, name in enumerate(column) if count[name] == 1}
    return found


def meaning(label: str) -> str:
    """The WordNet id of a class of ImageNet, by whichever of its names; any other label as it is."""
    return _wordnet_ids().get(label, label)


@cache
def _first_synonyms() -> dict[str, str]:
    ids, _, first = imagenet_names(IMAGENET) or ((), (), ())
    return dict(zip(ids, first, strict=True))


def readable(label: str) -> str:
    """``n01440764 tench`` for a WordNet id of ImageNet; any other label as it is."""
    synonym = _first_synonyms().get(label)
    return label if synonym is None else f"{label} {synonym}"


def _set_names(name: str, where: str) -> ClassNames:
    try:
        return imagenet_names(name) or ()
    except (AssertionError, FileNotFoundError, KeyError):
        raise InputError(
            f"{where}: labels {name}: timm knows no such set of classes; expected e.g. {IMAGENET}"
        ) from None

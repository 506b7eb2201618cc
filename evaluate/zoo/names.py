"""How the outputs of a classifier are called, and which of them the classes of a held-out set are."""

from collections.abc import Sequence
from pathlib import Path

from timm.data.imagenet_info import ImageNetInfo

from ...export.bundle import read_labels
from ...export.labels import check_labels
from ...models.class_names import ClassNames, imagenet_names
from ...models.errors import InputError

IMAGENET = "imagenet-1k"


def read_names(labels: list[str] | str, folder: Path, where: str) -> ClassNames:
    """The names of outputs.

    Args:
        labels: Names, a text file with one a line, or timm's name of a set of classes.
        folder: Where a relative path starts.
        where: Whose they are, for errors.

    Raises:
        InputError: No such file or set, or names that cannot be told apart.
    """
    if isinstance(labels, str):
        if labels.startswith("imagenet"):
            return _set_names(labels, where)
        if not (folder / labels).is_file():
            raise InputError(f"{where}: labels {labels}: no such file; expected one with a name a line, or {IMAGENET}")
        labels = read_labels(folder / labels)
    return columns(check_labels([str(label) for label in labels], len(labels), where))


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


def _set_names(name: str, where: str) -> ClassNames:
    try:
        ImageNetInfo(name)
    except (AssertionError, FileNotFoundError, KeyError):
        raise InputError(
            f"{where}: labels {name}: timm knows no such set of classes; expected e.g. {IMAGENET}"
        ) from None
    return imagenet_names(name) or ()

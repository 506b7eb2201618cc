"""What a source of images lists: samples, their splits, and where they are from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from ....core.errors import InputError
from ....core.records import OPTIONAL

SPLITS = ("train", "val", "test")
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

"""What classifiers are measured on: labelled images or features that no training saw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from ..core.errors import InputError
from ..core.files import sha256_json
from ..export.parity.held_out import HeldOut, HeldOutImages, held_out_features, same_source
from ..export.runtime import Array, Model
from ..models.images import flatten
from ..models.preprocessing import WHITE
from ..trainer.features.images.image_set import ImageSet, open_images
from ..trainer.features.manifest import FORMAT, MANIFEST
from .truth_file import class_names_of, labelled_by, renamed
from .zoo import Candidate, match_names

if TYPE_CHECKING:
    from ..trainer.features.feature_set import FeatureSet


@dataclass(frozen=True)
class HeldOutData:
    """A held-out set, before any classifier.

    Attributes:
        source: The keyword arguments of `open_data` that open it again, paths as they were given.
        images: The images, or ``None``.
        features: The feature set whose test split it is, or ``None``.
        sets: ``(N, L)`` int64, the right classes of each image, -1 where it has fewer; ``None`` where each has one.
        groups: The group of each image, or ``None``.
        notes: What was found on the way, in words.
    """

    source: dict[str, Any]
    images: ImageSet | None = None
    features: "FeatureSet | None" = None
    sets: Array | None = None
    groups: list[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Where it comes from, as it was given; of ``.`` and the like the folder's own name."""
        given = Path(self.source["data"])
        return str(given if given.name not in ("", "..") else given.resolve().name)

    @property
    def place(self) -> str:
        """The same as an absolute path, if it is one."""
        return str(Path(self.features.path).resolve() if self.features else self._images.source["source"])

    @property
    def class_names(self) -> list[str]:
        """Its classes, in its order."""
        return self.features.class_names if self.features else self._images.class_names

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> list[str]:
        """Its sample ids, in order."""
        return self.features.ids("test") if self.features else [sample.id for sample in self._images.samples]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over classes, ids, labels and contents."""
        own = self.features.fingerprint if self.features else self._images.fingerprint
        further = {"sets": None if self.sets is None else self.sets.tolist(), "groups": self.groups}
        return sha256_json([own, further]) if any(further.values()) else own

    @cached_property
    def duplicates(self) -> int:
        """Images that repeat an earlier one, byte by byte."""
        count = Counter(self.images.hashes if self.images else ())
        return sum(times - 1 for content, times in count.items() if content is not None)

    def matched(self, candidate: Candidate, model: Model, strict: bool) -> HeldOut:
        """The inputs as a classifier takes them, with its own numbers of the classes.

        Raises:
            InputError: A class that the classifier does not know, or images for a head alone and the reverse.
        """
        if candidate.head_only:
            return held_out_features(self.features or self.name, model.metadata, candidate.labels)
        if self.images is None:
            raise InputError(f"{self.name}: is a feature set, which only heads that were exported alone take")
        index = match_names(self.class_names, candidate.names, self.name)
        return HeldOutImages(self.images, index, model.metadata.prepare, strict)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {sample: row for row, sample in enumerate(self.ids)}

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Which inputs have these ids."""
        return [self._rows[sample] for sample in ids]

    def image(self, sample: str) -> Image.Image:
        """The image with an id, upright 8-bit RGB on white.

        Raises:
            InputError: There is none, or it does not decode.
        """
        if self.images is None or sample not in self._rows:
            raise InputError(f"{self.name}: holds no image {sample}")
        return flatten(self.images.read(self._rows[sample]), WHITE)

    @property
    def _images(self) -> ImageSet:
        if self.images is None:
            raise ValueError("features have no images")
        return self.images


def open_data(
    data: str | Path,
    *,
    truth: str | Path | None = None,
    class_ids: str | Path | None = None,
    group_column: str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    part: bool | Mapping[str, str] = False,
) -> HeldOutData:
    """Open a held-out set.

    Args:
        data: A folder of class folders, all of which are held out; a source with a test split; a `datasets` name; a
            folder of images, with ``truth``; or a feature set.
        truth: See `headsmith.evaluate.truth_file.labelled_by`.
        class_ids: What numbered classes are called: see `headsmith.evaluate.truth_file.class_names_of`.
        group_column: Column of ``truth``, or of a `datasets` source, with a group for each image.
        image_column: Image column of a `datasets` source.
        label_column: Label column of a `datasets` source.
        part: Take the test split that an undivided source got when a head was trained on it; with the images that
            followed their copies into another split, see ``together`` of `open_images`.

    Raises:
        InputError: No such data, nothing in it, or parts that do not fit together.
    """
    where = Path(data).expanduser()
    columns: dict[str, Any] = {"image_column": image_column, "label_column": label_column}
    keys = {"truth": truth, "class_ids": class_ids, "group_column": group_column, **columns}
    source: dict[str, Any] = {
        "data": str(data),
        "part": dict(part) if isinstance(part, Mapping) else part,
    }
    source |= {name: str(value) for name, value in keys.items() if value is not None}
    if _is_feature_set(where):
        _unread(f"{data}: is a feature set, which holds its labels and class names", keys)
        from ..trainer.features.feature_set import FeatureSet

        return HeldOutData(source, features=FeatureSet.load(where))
    if where.is_file():
        raise InputError(
            f"{data}: is a file, expected a folder of images; features are measured as a feature set, which `headsmith "
            "import` makes of a file"
        )
    if truth is not None:
        _unread(f"{truth}: says the labels of a folder of images, not of a data set with columns", columns)
        found = labelled_by(Path(truth), where, class_ids, group_column)
        return HeldOutData(source, found.images, None, found.sets, found.groups, tuple(found.notes))
    if part is False:
        images = open_images(data, **columns, splits=False)
    else:
        images = open_images(data, **columns, together=part if isinstance(part, Mapping) else False).split("test")
    if not len(images):
        raise InputError(f"{data}: no held-out image in it")
    ids = class_names_of(class_ids)
    groups = None if group_column is None else _groups(images, data, group_column)
    return HeldOutData(source, images if ids is None else renamed(images, ids, str(data)), groups=groups)


def part_trained_on(
    data: str | Path, origins: Sequence[Mapping[str, Any]], **columns: str | None
) -> bool | Mapping[str, str]:
    """Whether a head was trained on a part of this very source, so that only its held-out part may be measured.

    Args:
        data: See `open_data`.
        origins: Manifests of bundles.
        columns: ``image_column`` and ``label_column`` of `open_data`.

    Returns:
        ``part`` of `open_data`.
    """
    for origin in origins:
        source = origin["features"]["source"]
        if source is not None and same_source(data, origin, dict(columns)) is not None:
            moved: bool | Mapping[str, str] = source.get("together", True)
            return moved
    return False


def _unread(why: str, keywords: Mapping[str, Any]) -> None:
    """Refuse keywords that this kind of data does not read.

    Raises:
        InputError: One of them was given.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in keywords.items() if value is not None]
    if given:
        raise InputError(f"{why}; leave {' and '.join(given)} away")


def _is_feature_set(path: Path) -> bool:
    file = path / MANIFEST
    return file.is_file() and f'"{FORMAT}"' in file.read_text(encoding="utf-8", errors="replace")


def _groups(images: ImageSet, data: str | Path, column: str) -> list[str]:
    """The group of each image, from a column of a `datasets` source."""
    if "image_column" not in images.source:
        raise InputError(f"--group-column: {data} has no columns; name a `datasets` source, or a CSV file with --truth")
    from ..trainer.features.images.datasets_source import load, plain_column

    name, found = load(data)
    tables = found if isinstance(found, Mapping) else {"train": found}
    splits = {sample.id.partition("/")[0] for sample in images.samples}
    values: dict[str, Any] = {}
    for split, table in tables.items():
        plain_column(table.features, column, "--group-column", name)
        values[split] = np.asarray(table[column][:])
    own = {split: split for split in values}
    if not splits <= values.keys():
        from ..trainer.features.images.samples import by_split

        own = by_split(values, name)
    return [str(values[own[split]][int(row)]) for split, _, row in (one.id.partition("/") for one in images.samples)]

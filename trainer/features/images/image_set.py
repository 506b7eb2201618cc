"""Labelled images, wherever they come from: class folders or a `datasets` data set."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from PIL import Image

from ....core.cpus import usable_cpus
from ....core.errors import InputError
from ....core.progress import progress
from ....models.images import open_image
from .datasets_source import is_datasets_folder, list_dataset
from .folder_source import list_folder
from .samples import HELD_OUT_SHARE, SEED, SPLITS, Listing, Sample, carve, listed
from .threads import ordered_map


@dataclass(frozen=True)
class ImageSet:
    """Labelled images in a fixed order: train, val, test; within a split as the source lists them.

    Attributes:
        source: The keyword arguments of `open_images` that open this set again, as JSON values.
        class_names: Name of every class; a label is an index into them.
        samples: Id, label and split of every image.
        split_rule: How the images came to be divided, in words.
        content: From a sample to its file or its encoded bytes.
    """

    source: dict[str, Any]
    class_names: list[str]
    samples: list[Sample]
    split_rule: str
    content: Callable[[Sample], Path | bytes]

    def __len__(self) -> int:
        return len(self.samples)

    def read(self, index: int) -> Image.Image:
        """Decode the image at ``index`` to upright 8-bit RGB.

        Raises:
            UnreadableImage: It does not decode; the message names its id.
        """
        sample = self.samples[index]
        return open_image(self.content(sample), sample.id)

    def split(self, name: str) -> "ImageSet":
        """The images of one split: ``train``, ``val`` or ``test``."""
        if name not in SPLITS:
            raise InputError(f"split: {name!r} is not known; expected one of {SPLITS}")
        return replace(self, samples=[sample for sample in self.samples if sample.split == name])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over class names and every sample's id, label, split and bytes.

        Contents are hashed, not sizes and times: a copy, a clone or an unpacked archive keeps its fingerprint, and an
        image that changed in place never passes. It costs one read of the files, less than decoding them does.
        """
        digest = hashlib.sha256(json.dumps(self.class_names).encode())
        for sample, content in zip(self.samples, self.hashes, strict=True):
            digest.update(json.dumps([sample.id, sample.label, sample.split, content]).encode())
        return digest.hexdigest()

    @cached_property
    def hashes(self) -> list[str | None]:
        """SHA-256 of every image's bytes, or ``None`` where there are none to read."""
        found: list[str | None] = []
        with progress("Hashing images", len(self), "images") as advance:
            for content in ordered_map(
                lambda sample: _hash(self.content, sample), self.samples, usable_cpus(), ahead=256
            ):
                found.append(content)
                advance(1)
        return found


def _hash(content: Callable[[Sample], Path | bytes], sample: Sample) -> str | None:
    """SHA-256 of an image's bytes, or ``None`` where there are none to read."""
    try:
        found = content(sample)
        if isinstance(found, bytes):
            return hashlib.sha256(found).hexdigest()
        with found.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (InputError, OSError):
        return None


def open_images(
    source: str | Path,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    splits: bool = True,
) -> ImageSet:
    """Open labelled images and divide them into train, val and test.

    Class folders are ordered by name, as text. A split that the source lacks is carved out of its training images:
    a tenth of every class, the same one at every opening. ``valid`` and ``validation`` mean ``val``.

    Args:
        source: A folder of class folders, with or without ``train``, ``val`` and ``test`` inside; a folder written by
            `datasets` (``save_to_disk``) or of data files that it loads; or the name of a data set on the hub.
        image_column: Column with the images of a `datasets` source; by default its only image column.
        label_column: Column with the labels of a `datasets` source; by default its only possible one.
        splits: False takes held-out images as they are: all of an undivided source, or the ``test`` split of a
            divided one, as ``test``. Nothing is carved.

    Raises:
        InputError: Nothing usable is there; the message says what was found, what was expected and what to do.
    """
    listing = _find(source, image_column, label_column)
    name = listing.source["source"]
    if not splits:
        return _held_out(listing, name)
    present = {sample.split for sample in listing.samples}
    if "train" not in present:
        raise InputError(f"{name}: has no train split, found {sorted(present)}; add a train split")
    _check_classes(listing, name)
    missing = [split for split in ("val", "test") if split not in present]
    if not missing:
        return _image_set(listing, listing.samples, "the source's own train, val and test")
    share = f"{HELD_OUT_SHARE:.0%} of each class, at least 1, by rank of sha256('{SEED}:' + id)"
    try:
        samples = carve(listing.samples, listing.class_names, missing)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return _image_set(listing, samples, f"{' and '.join(missing)} carved from train: {share}")


def _find(source: str | Path, image_column: str | None, label_column: str | None) -> Listing:
    path = Path(source).expanduser()
    columns = image_column is not None or label_column is not None
    if path.is_dir() and not columns and not is_datasets_folder(path):
        return list_folder(path)
    return list_dataset(source, image_column, label_column)


def _image_set(listing: Listing, samples: list[Sample], rule: str, **source: Any) -> ImageSet:
    return ImageSet(listing.source | source, listing.class_names, samples, rule, listing.content)


def _held_out(listing: Listing, name: str) -> ImageSet:
    samples = listing.samples
    if listing.divided:
        samples = [sample for sample in samples if sample.split == "test"]
        if not samples:
            found = sorted({sample.split for sample in listing.samples})
            raise InputError(f"{name}: is divided into {found} and has no test split; name a folder of class folders")
    samples = [replace(sample, split="test") for sample in samples]
    return _image_set(listing, samples, "all images are held out", splits=False)


def _check_classes(listing: Listing, name: str) -> None:
    """Refuse what no head can be trained on or scored with."""
    seen = {sample.label for sample in listing.samples if sample.split == "train"}
    for split in ("val", "test"):
        labels = {sample.label for sample in listing.samples if sample.split == split}
        unseen = [listing.class_names[label] for label in sorted(labels - seen)]
        if unseen:
            raise InputError(
                f"{name}: {split} has classes that train has no image of: {listed(unseen)}; add training images of "
                f"them, correct the name, or take them out of {split}"
            )
    if len(seen) < 2:
        only = listed([listing.class_names[label] for label in seen])
        raise InputError(f"{name}: has one class only ({only}), expected at least 2; add another class")

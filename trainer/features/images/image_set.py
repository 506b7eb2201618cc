"""Labelled images, wherever they come from: class folders or a `datasets` data set."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from PIL import Image

from ....core.cpus import usable_cpus
from ....core.errors import InputError
from ....core.listed import listed
from ....core.progress import progress, stage
from ....models.images import open_image
from ..manifest import is_feature_set
from .carving import HELD_OUT_SHARE, SEED, carve, move
from .decode_threads import ordered_map
from .folder_source import list_folder
from .kept_crops import CropFolder
from .picture_identity import content_hash, hashes_of_equal_size
from .samples import SPLITS, ImageSource, Listing, Sample
from .source_kind import is_datasets_folder

TOGETHER = ", copies of a picture in one split"
FILLED = ", places of unreadable images filled out of train"


@dataclass(frozen=True)
class ImageSet:
    """Labelled images in a fixed order: train, val, test; within a split as the source lists them.

    Attributes:
        source: What opens this set again, with `reopen`.
        class_names: Name of every class; a label is an index into them.
        samples: Id, label and split of every image.
        split_rule: How the images came to be divided, in words.
        content: From a sample to its file or its encoded bytes.
        carved: The splits that were carved out of the source's training images.
        known: SHA-256 of bytes that were read already, by id.
        crops: Where crops are kept for whoever decodes these images next; ``None`` where each decodes for itself.
    """

    source: ImageSource
    class_names: list[str]
    samples: list[Sample]
    split_rule: str
    content: Callable[[Sample], Path | bytes]
    carved: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict, repr=False)
    crops: CropFolder | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.samples)

    def read(self, index: int, before: Callable[[int], object] = lambda pixels: None) -> Image.Image:
        """Decode the image at ``index``: see `open_image`.

        Raises:
            UnreadableImage: It does not decode; the message names its id.
        """
        sample = self.samples[index]
        return open_image(self.content(sample), sample.id, before)

    def split(self, name: str) -> "ImageSet":
        """The images of one split: ``train``, ``val`` or ``test``."""
        if name not in SPLITS:
            raise InputError(f"split: {name!r} is not known; expected one of {SPLITS}")
        return replace(self, samples=[sample for sample in self.samples if sample.split == name])

    def moved(self, splits: Mapping[str, str], why: str = TOGETHER) -> "ImageSet":
        """The same with images in other splits.

        Args:
            splits: The new splits by id; ids that are not here count for nothing. They go into the record of the
                source, so that it opens with the same division.
            why: What the split rule says of it.
        """
        rule = self.split_rule if why in self.split_rule else self.split_rule + why
        source = replace(self.source, together=dict(splits))
        return replace(self, source=source, samples=move(self.samples, splits), split_rule=rule)

    def divided_as(self, source: ImageSource) -> "ImageSet | None":
        """These images divided as a record of them says; ``None`` where it is the record of others."""
        if source == self.source:
            return self
        if source.together is None or replace(source, together=self.source.together) != self.source:
            return None
        return self.moved(source.together)

    def hashed(self) -> "ImageSet":
        """The same, with `hashes` known to it and to its parts, so that no file is read for them again."""
        pairs = zip(self.samples, self.hashes, strict=True)
        return replace(self, known={sample.id: content for sample, content in pairs if content is not None})

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
                lambda sample: self.known.get(sample.id) or content_hash(self.content, sample),
                self.samples,
                usable_cpus(),
                ahead=256,
            ):
                found.append(content)
                advance(1)
        return found


def open_images(
    source: str | Path,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    splits: bool = True,
    together: bool | Mapping[str, str] = True,
) -> ImageSet:
    """Open labelled images and divide them into train, val and test.

    Class folders are ordered by name, as text. A split that the source lacks is carved out of its training images:
    a tenth of every class, the same one at every opening. Files of equal bytes stay in one split. ``valid`` and
    ``validation`` mean ``val``.

    Args:
        source: A folder of class folders, with or without ``train``, ``val`` and ``test`` inside; a folder written by
            `datasets` (``save_to_disk``) or of data files that it loads; or the name of a data set on the hub.
        image_column: Column with the images of a `datasets` source; by default its only image column.
        label_column: Column with the labels of a `datasets` source; by default its only possible one.
        splits: False takes held-out images as they are: all of an undivided source, or the ``test`` split of a
            divided one, as ``test``. Nothing is carved.
        together: Whether copies stay in one split where splits are carved (older versions did not care); or, from the
            record of an extraction, which saw their pixels, the splits of images that follow copies of theirs or take
            the places of unreadable ones.

    Raises:
        InputError: Nothing usable is there; the message says what was found, what was expected and what to do.
    """
    listing, name = _find(source, image_column, label_column), str(source)
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
    found = [sample for sample in listing.samples if sample.split == "train"]
    known = hashes_of_equal_size(found, listing.content, listing.size) if together is not False else {}
    times = Counter(known.values())
    same = {name: digest for name, digest in known.items() if times[digest] > 1}
    kept = True
    try:
        samples = carve(listing.samples, listing.class_names, missing, same)
        if same and all(sample.split not in missing for sample in samples):  # copies alone: divided, and told
            samples, same, kept = carve(listing.samples, listing.class_names, missing), {}, False
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    images = _image_set(listing, samples, f"{' and '.join(missing)} carved from train: {share}")
    images = replace(images, carved=tuple(missing) if kept else (), known=known)
    moves = together if isinstance(together, Mapping) else {}
    return images.moved(moves) if same or isinstance(together, Mapping) else images


def reopen(source: ImageSource) -> ImageSet:
    """The images that the record of a feature set, a run or a bundle names, divided as they were then.

    Raises:
        InputError: See `open_images`.
    """
    return open_images(
        source.source,
        image_column=source.image_column,
        label_column=source.label_column,
        splits=source.splits is not False,
        together=False if source.together is None else source.together,
    )


def _find(source: str | Path, image_column: str | None, label_column: str | None) -> Listing:
    path = Path(source).expanduser()
    if is_feature_set(path):
        raise InputError(f"{source}: is a feature set, which holds no images; expected the images themselves")
    with stage(f"Listing {source}"):
        return _listed(path, source, image_column, label_column)


def _listed(path: Path, source: str | Path, image_column: str | None, label_column: str | None) -> Listing:
    columns = image_column is not None or label_column is not None
    if path.is_dir() and not columns and not is_datasets_folder(path):
        return list_folder(path)
    from .datasets_source import list_dataset

    return list_dataset(source, image_column, label_column)


def _image_set(listing: Listing, samples: list[Sample], rule: str) -> ImageSet:
    return ImageSet(listing.source, listing.class_names, samples, rule, listing.content)


def _held_out(listing: Listing, name: str) -> ImageSet:
    samples = listing.samples
    if listing.divided:
        samples = [sample for sample in samples if sample.split == "test"]
        if not samples:
            found = sorted({sample.split for sample in listing.samples})
            raise InputError(f"{name}: is divided into {found} and has no test split; name a folder of class folders")
    samples = [replace(sample, split="test") for sample in samples]
    images = _image_set(listing, samples, "all images are held out")
    return replace(images, source=replace(images.source, splits=False))


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

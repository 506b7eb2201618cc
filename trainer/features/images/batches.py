"""Decoded batches of images: the one way in which extraction, parity and evaluation see them."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from PIL import Image

from ....core.count_limits import check_at_once, check_threads
from ....core.cpus import usable_cpus
from ....core.printable import printable
from ....models.images import UnreadableImage, remarks
from ....models.preprocessing import Preprocessing
from . import decode_threads
from .decode_memory import Room
from .image_set import ImageSet
from .kept_crops import Crop
from .picture_identity import picture_hash
from .samples import Sample

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Prepare = Callable[[Image.Image], Pixels]
Prepared = TypeVar("Prepared")


class Kept(Protocol[Prepared]):
    """What was prepared before; see `.kept_crops`."""

    def get(self, sample: str) -> Prepared | None:
        """That of an image by its id, where it is there."""

    def put(self, sample: str, crop: Prepared) -> None:
        """Keep it."""


AHEAD = 256
# 8 threads decode 5 times as much as one, 16 and 32 less than 8: PIL holds Python's lock for a while with every image.
_MOST_THREADS = 8
# As many are decoded before processes are well under way.
_FEW = 500
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ImageBatch:
    """Images after resize and crop, in the order of their image set.

    Attributes:
        pixels: ``(N, H, W, 3)``, uint8, RGB.
        labels: ``(N,)``, int64.
        ids: N sample ids.
        remarks: How many of them were more than plain RGB or grey, by what: see `headsmith.models.images.remarks`.
        pictures: What ``identify`` says of each; empty where nobody asks.
    """

    pixels: Pixels
    labels: np.ndarray[Any, np.dtype[np.int64]]
    ids: list[str]
    remarks: Mapping[str, int] = field(default_factory=dict)
    pictures: list[str] = field(default_factory=list)


def image_batches(
    images: ImageSet,
    preprocessing: Prepare,
    batch_size: int,
    *,
    workers: int | None = None,
    strict: bool = False,
    on_unreadable: Callable[[str, str], None] | None = None,
    identify: Callable[[Image.Image], str] | None = None,
) -> Iterator[ImageBatch]:
    """Decode images beside whoever reads them, and give them in batches.

    What `ImageSet.crops` holds is not decoded again.

    Args:
        images: What to decode.
        preprocessing: Resize and crop: a `Preprocessing`, or nothing of the kind for images one at a time.
        batch_size: Images a batch; fewer where some are unreadable, and in the last one. None is empty.
        workers: How many decode, see `decode`; by default one for each CPU that this process may use.
        strict: Stop at an unreadable image instead of leaving it out.
        on_unreadable: Called with the id of an image that is left out and the reason; by default it is logged.
        identify: From an image as it was decoded to its `picture_hash`, which is kept with its crop.

    Raises:
        UnreadableImage: An image does not decode and ``strict`` is true.
        InputError: ``batch_size`` or ``workers`` is below 1.
    """
    check_at_once("--batch-size", batch_size)
    report = on_unreadable or (lambda name, reason: _log.warning("%s: left out: %s", name, reason))

    recipe = preprocessing if isinstance(preprocessing, Preprocessing) else None
    kept = None if images.crops is None or recipe is None else images.crops.of(recipe)

    def prepare(image: Image.Image, _: str) -> Crop:
        if kept is not None and recipe is not None:
            picture = picture_hash(recipe.flatten(image))
        else:
            picture = "" if identify is None else identify(image)
        return preprocessing(image)[None], picture, remarks(image)

    decoded = decode(images, range(len(images)), prepare, workers, ahead=min(AHEAD, 4 * batch_size), kept=kept)
    with closing(decoded):
        while window := list(islice(decoded, batch_size)):
            read = [found for _, found in window if not isinstance(found, UnreadableImage)]
            pixels = [(one, found if isinstance(found, UnreadableImage) else found[0][0]) for one, found in window]
            batch = gather(pixels, strict, report)
            if batch.ids:
                pictures = [] if identify is None else [picture for _, picture, _ in read]
                seen = Counter(remark for *_, found in read for remark in found)
                yield replace(batch, remarks=seen, pictures=pictures)


def decode(
    images: ImageSet,
    indices: Iterable[int],
    prepare: Callable[[Image.Image, str], Prepared],
    workers: int | None = None,
    *,
    ahead: int = AHEAD,
    kept: Kept[Prepared] | None = None,
) -> Generator[tuple[Sample, Prepared | UnreadableImage], None, None]:
    """Decode images and prepare their pixels, in the order of ``indices``.

    In threads, as PIL lets others run while it decodes and scales. For many images more than 8 workers are forked
    processes (on Linux), which need not wait for each other where it does not. About ``ahead`` images wait, after the
    crop. What is decoded at once has to fit half of the free memory, see `Room`.

    Args:
        images: Where they are.
        indices: Which; drawn as decoding gets there.
        prepare: From an image and its split to pixels, uint8, or whatever is wanted.
        workers: How many; by default one for each CPU that this process may use.
        ahead: How many may be begun before their turn.
        kept: What was prepared of these images before, and where it is put.

    Yields:
        The sample, and what was prepared or why there is nothing.
    """
    count = usable_cpus() if workers is None else workers
    check_threads("--workers", count)

    forked = count > _MOST_THREADS and len(images) > _FEW and _can_fork()
    room = Room(processes=forked)

    def one(index: int) -> tuple[Sample, Prepared | UnreadableImage]:
        if kept is not None and (known := kept.get(images.samples[index].id)) is not None:
            return images.samples[index], known
        try:
            with room.turn() as enter:
                found = prepare(images.read(index, enter), images.samples[index].split)
        except UnreadableImage as error:
            return images.samples[index], error
        if kept is not None:
            kept.put(images.samples[index].id, found)
        return images.samples[index], found

    if forked:
        from . import decode_processes  # with torch

        return decode_processes.ordered_map(one, indices, count, ahead=ahead)
    return decode_threads.ordered_map(one, indices, count, ahead=ahead)


def _can_fork() -> bool:
    from . import decode_processes  # with torch

    return decode_processes.can_fork()


def gather(
    window: list[tuple[Sample, Pixels | UnreadableImage]], strict: bool, report: Callable[[str, str], None]
) -> ImageBatch:
    """Put decoded samples into one batch (which may be empty); report or, if ``strict``, raise the unreadable ones."""
    pixels, samples = [], []
    for sample, found in window:
        if isinstance(found, UnreadableImage):
            reason = str(found).removeprefix(f"{printable(sample.id)}: ")
            if strict:
                raise UnreadableImage(f"{sample.id}: {reason}; repair or remove it, or run without --strict")
            report(sample.id, reason)
            continue
        pixels.append(found)
        samples.append(sample)
    labels = np.array([sample.label for sample in samples], dtype=np.int64)
    stacked = np.stack(pixels) if pixels else np.empty((0, 0, 0, 3), dtype=np.uint8)
    return ImageBatch(stacked, labels, [sample.id for sample in samples])

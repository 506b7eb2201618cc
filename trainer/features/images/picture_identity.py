"""Which images are one picture: equal bytes before they are decoded, equal pixels after."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from PIL import Image

from ....core.cpus import usable_cpus
from ....core.errors import InputError
from ....core.files import regular_file
from ....core.progress import progress
from .decode_threads import ordered_map
from .samples import SPLITS, Sample

Array = np.ndarray[Any, Any]


def picture_hash(image: Image.Image) -> str:
    """What identifies a decoded picture: XXH3-128 of its size and pixels, in hexadecimal.

    Equal bytes decode to equal pixels, so this tells copies of a file, and copies in another lossless format or with
    other metadata. The hash is fast and not secure: who makes two pictures collide feigns a copy, and hides none.

    Args:
        image: An upright image in mode RGB.
    """
    digest = xxhash.xxh3_128(f"{image.width} {image.height} {image.mode} ".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def content_hash(content: Callable[[Sample], Path | bytes], sample: Sample) -> str | None:
    """SHA-256 of an image's bytes, in hexadecimal, or ``None`` where there are none to read."""
    try:
        found = content(sample)
        if isinstance(found, bytes):
            return hashlib.sha256(found).hexdigest()
        with regular_file(found).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (InputError, OSError):
        return None


def hashes_of_equal_size(
    samples: Sequence[Sample], content: Callable[[Sample], Path | bytes], size: Callable[[Sample], int | None]
) -> dict[str, str]:
    """SHA-256 of the bytes of every image that is as large as another one, by id; no other can have a copy."""
    by_size: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        if (length := size(sample)) is not None:
            by_size[length].append(sample)
    asked = [sample for group in by_size.values() if len(group) > 1 for sample in group]
    found: dict[str, str] = {}
    with progress("Looking for copies", len(asked), "images", shown=bool(asked)) as advance:
        hashes = ordered_map(lambda one: content_hash(content, one), asked, usable_cpus(), ahead=256)
        for sample, digest in zip(asked, hashes, strict=True):
            if digest is not None:
                found[sample.id] = digest
            advance(1)
    return found


def followers(
    splits: Mapping[str, Sequence[str]], pictures: Mapping[str, Sequence[str]], own: Sequence[str]
) -> dict[str, str]:
    """Where images go that show a picture of another split: with the one that was held out first.

    Args:
        splits: Ids by split.
        pictures: `picture_hash` of each of them.
        own: The splits among which images may be moved: those that were carved, and train.

    Returns:
        The new split of the images that move, by id.
    """
    place: dict[str, str] = {}
    for split in sorted(own, key=SPLITS.index):  # test is carved first, so it comes last
        place |= dict.fromkeys(pictures[split], split)
    return {
        name: place[picture]
        for split in own
        for name, picture in zip(splits[split], pictures[split], strict=True)
        if place[picture] != split
    }

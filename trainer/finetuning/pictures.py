"""The images of a fine-tuning: decoded once, divided as an extraction divides them, kept where they fit."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from torch import Tensor

from ...core.coded_warnings import CodedWarning
from ...core.environment import free_memory
from ...core.errors import InputError
from ...core.progress import progress
from ...models.images import UnreadableImage
from ...models.preprocessing import Preprocessing
from ..features.copies import Shown, find_copies
from ..features.extraction.redivision import check_left, redivide
from ..features.images.batches import Pixels, decode
from ..features.images.image_set import ImageSet
from ..features.images.picture_identity import picture_hash
from ..features.images.samples import SPLITS, Unreadable

TRAIN = SPLITS[0]
# Of the free memory, so much may be taken by decoded images.
_PART = 0.5
_ABOUT_UNREADABLE = 3


class _Read(NamedTuple):
    """An image that was read: its pixels, unless they are not kept, what its picture is, and its shorter edge."""

    pixels: Pixels | None
    picture: str
    edge: int


@dataclass(frozen=True)
class Pictures:
    """The images of one split.

    Attributes:
        images: They, in the order of ``labels``.
        labels: ``(N,)`` int64, on the CPU.
        recipe: How they are resized and cropped.
        pixels: Of each image ``(H, W, 3)``, uint8; empty where they are decoded anew each time.
        workers: How many then decode.
    """

    images: ImageSet
    labels: Tensor
    recipe: Preprocessing
    pixels: Sequence[Pixels]
    workers: int | None

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, order: Tensor, sizes: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        """Pixels ``(B, 3, H, W)``, uint8, and labels ``(B,)``, on the CPU.

        Args:
            order: ``(M,)`` int64, which images.
            sizes: Of the batches; their sum is M or less.
        """
        with closing(self._each(order.tolist())) as each:
            start = 0
            for size in sizes:
                rows = order[start : start + size]
                pixels = torch.from_numpy(np.stack([next(each) for _ in range(size)]))
                yield pixels.permute(0, 3, 1, 2), self.labels[rows]
                start += size

    def _each(self, order: list[int]) -> Any:
        if self.pixels:
            return (self.pixels[row] for row in order)
        return self._decoded(order)

    def _decoded(self, order: list[int]) -> Iterator[Pixels]:
        found = decode(self.images, order, lambda image, _: self.recipe(image), self.workers)
        with closing(found):
            for _, pixels in found:
                if isinstance(pixels, UnreadableImage):
                    raise InputError(f"{pixels}; it was readable before: bring it back and run the same command again")
                yield pixels


@dataclass(frozen=True)
class DividedPictures:
    """All images that can be read.

    Attributes:
        splits: By name.
        images: Divided as they were trained on.
        warnings: What was found.
        in_memory: Whether they are kept decoded.
        smallest: The shorter edge of the smallest image, in pixels.
    """

    splits: Mapping[str, Pictures]
    images: ImageSet
    warnings: list[CodedWarning]
    in_memory: bool
    smallest: int


def read_pictures(
    images: ImageSet, training: Preprocessing, deployed: Preprocessing, workers: int | None
) -> DividedPictures:
    """Decode every image once, and divide them anew where their pixels ask for it, see `redivide`.

    Args:
        images: As they were opened.
        training: How images of the training split are resized and cropped.
        deployed: The same of the others.
        workers: How many decode.

    Raises:
        InputError: Unreadable images leave a split empty or a class without training images.
    """
    recipes = {split: training if split == TRAIN else deployed for split in SPLITS}
    kept = sum(_size(recipes[one.split]) for one in images.samples) < _PART * free_memory()

    def read(image: Image.Image, split: str) -> _Read:
        pixels = recipes[split](image) if kept else None
        return _Read(pixels, picture_hash(deployed.flatten(image)), min(image.size))

    found: dict[str, _Read] = {}
    unreadable: list[Unreadable] = []
    with progress("Decoding images", len(images), "images") as advance:
        for sample, one in decode(images, range(len(images)), read, workers):
            if isinstance(one, UnreadableImage):
                unreadable.append(Unreadable(sample.id, str(one).removeprefix(f"{sample.id}: ")))
            else:
                found[sample.id] = one
            advance(1)
    tables = {split: _table(images.split(split), found) for split in SPLITS}
    divided, moved, warnings = redivide(images, tables, [one.id for one in unreadable])
    divided = replace(divided, samples=[one for one in divided.samples if one.id in found])
    parts = {split: divided.split(split) for split in SPLITS}
    labels = {split: np.array([one.label for one in part.samples], np.int64) for split, part in parts.items()}
    check_left(labels, divided, unreadable)
    pixels = {name: one.pixels for name, one in found.items() if one.pixels is not None}
    if kept and moved:
        pixels |= _read_again(divided, [name for name in moved if name in found], recipes, workers)
    splits = {
        split: Pictures(
            part,
            torch.from_numpy(labels[split]),
            recipes[split],
            [pixels[one.id] for one in part.samples] if kept else [],
            workers,
        )
        for split, part in parts.items()
    }
    counts = {split: len(part) for split, part in parts.items()}
    shown = {split: _shown(_table(part, found)) for split, part in parts.items()}
    warnings = [*find_copies(shown, images.class_names).warnings(counts), *_left_out(unreadable), *warnings]
    return DividedPictures(splits, divided, warnings, kept, min(one.edge for one in found.values()))


def _size(recipe: Preprocessing) -> int:
    height, width = recipe.crop_size
    return height * width * 3


def _table(images: ImageSet, found: Mapping[str, _Read]) -> pa.Table:
    rows = [one for one in images.samples if one.id in found]
    return pa.table(
        {
            "id": pa.array([one.id for one in rows], pa.string()),
            "picture": pa.array([found[one.id].picture for one in rows], pa.string()),
            "label": pa.array([one.label for one in rows], pa.int64()),
        }
    )


def _shown(table: pa.Table) -> Shown:
    ids, pictures, labels = (table[name].combine_chunks() for name in ("id", "picture", "label"))
    return Shown(ids, labels.to_numpy(), pictures)


def _read_again(
    images: ImageSet, names: Sequence[str], recipes: Mapping[str, Preprocessing], workers: int | None
) -> dict[str, Pixels]:
    """The pixels of images that went into another split, whose recipe may be another."""
    wanted = set(names)
    rows = [row for row, one in enumerate(images.samples) if one.id in wanted]
    again = decode(images, rows, lambda image, split: recipes[split](image), workers)
    return {sample.id: pixels for sample, pixels in again if not isinstance(pixels, UnreadableImage)}


def _left_out(unreadable: Sequence[Unreadable]) -> list[CodedWarning]:
    if not unreadable:
        return []
    named = "; ".join(f"{one.id}: {one.reason}" for one in unreadable[:_ABOUT_UNREADABLE])
    more = "; ..." * (len(unreadable) > _ABOUT_UNREADABLE)
    return [CodedWarning("unreadable", f"{len(unreadable)} images could not be read and were left out ({named}{more})")]

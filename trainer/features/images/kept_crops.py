"""Crops on disk, so that one decode of an image serves all backbones that resize alike."""

import json
import os
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from ....core.files import make_folder, sha256_json
from ....models.preprocessing import Preprocessing

if TYPE_CHECKING:
    from .image_set import ImageSet

Crop = tuple[np.ndarray[Any, np.dtype[np.uint8]], str, tuple[str, ...]]
_HASH, _ABOUT = 8, 504
# Of what is free on the disk, so much may be taken by the crops of one way to resize.
_PART = 0.25
_GEOMETRY = ("resize_mode", "resize_size", "crop_size", "interpolation", "antialias", "background")


class KeptCrops:
    """A file with a record for each image: its crop, the hash of its picture, what it was more than plain RGB.

    Several threads and processes may read and write it. A record bears its own hash (xxh64): what was not written to
    its end is no record. Where the disk is full nothing more is kept.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, preprocessing: Preprocessing, places: Mapping[str, int]) -> None:
        height, width = preprocessing.crop_size
        self.path, self._shape, self._places = path, (1, height, width, 3), places
        self._size = _HASH + _ABOUT + height * width * 3
        self._full = False
        self._file = os.open(path, os.O_RDWR)
        weakref.finalize(self, os.close, self._file)

    def get(self, sample: str) -> Crop | None:
        """The pixels ``(1, H, W, 3)`` of an image, the hash of its picture and the remarks; ``None`` where none are."""
        if sample not in self._places:
            return None
        record = os.pread(self._file, self._size, self._places[sample] * self._size)
        if len(record) < self._size or xxhash.xxh64_digest(record[_HASH:]) != record[:_HASH]:
            return None
        picture, remarks = json.loads(record[_HASH : _HASH + _ABOUT].rstrip(b"\0"))
        pixels = np.frombuffer(record, np.uint8, offset=_HASH + _ABOUT).reshape(self._shape)
        return pixels, picture, tuple(remarks)

    def put(self, sample: str, crop: Crop) -> None:
        """Keep what `get` gives."""
        pixels, picture, remarks = crop
        about = json.dumps([picture, remarks]).encode()
        if self._full or sample not in self._places or pixels.shape != self._shape or len(about) > _ABOUT:
            return
        body = about.ljust(_ABOUT, b"\0") + pixels.tobytes()
        try:
            os.pwrite(self._file, xxhash.xxh64_digest(body) + body, self._places[sample] * self._size)
        except OSError:  # no room: images are decoded again, as without it
            self._full = True


@dataclass(frozen=True)
class CropFolder:
    """Where the crops of a set of images are kept, for whatever decodes them or a part of them.

    Attributes:
        path: The folder.
        contents: SHA-256 of the bytes of every image, by its id.
        backwards: Whether extractions begin at the end, where another process begins at the start, so that they decode
            other images until they meet.
    """

    path: Path
    contents: Mapping[str, str]
    backwards: bool = False

    @cached_property
    def _places(self) -> dict[str, int]:
        return {sample: place for place, sample in enumerate(self.contents)}

    @cached_property
    def _fingerprint(self) -> str:
        return sha256_json(list(self.contents.items()))

    def shared_with(self, images: "ImageSet") -> "ImageSet":
        """These images with this folder, where they are images of the set, byte by byte; else as they are."""
        images = images.hashed()
        known = all(
            self.contents.get(sample.id) == content
            for sample, content in zip(images.samples, images.hashes, strict=True)
        )
        return replace(images, crops=self) if known else images

    def of(self, preprocessing: Preprocessing) -> KeptCrops | None:
        """The crops by one way to resize; ``None`` where they have no room.

        Args:
            preprocessing: Resize and crop; what comes after these counts for nothing.
        """
        if not hasattr(os, "pread"):
            return None
        height, width = preprocessing.crop_size
        make_folder(self.path)
        if len(self.contents) * (_HASH + _ABOUT + height * width * 3) > _PART * shutil.disk_usage(self.path).free:
            return None
        recipe = [str(getattr(preprocessing, name)) for name in _GEOMETRY]
        path = self.path / f"{sha256_json([self._fingerprint, recipe])[:32]}.crops"
        path.touch()
        return KeptCrops(path, preprocessing, self._places)

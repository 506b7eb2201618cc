"""Crops on disk, so that one decode of an image serves all backbones that resize alike."""

import json
import os
import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ....core.files import make_folder, sha256_json
from ....models.preprocessing import Preprocessing

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

    def __init__(self, path: Path, preprocessing: Preprocessing) -> None:
        height, width = preprocessing.crop_size
        self.path, self._shape = path, (1, height, width, 3)
        self._size = _HASH + _ABOUT + height * width * 3
        self._full = False
        self._file = os.open(path, os.O_RDWR)
        weakref.finalize(self, os.close, self._file)

    def get(self, index: int) -> Crop | None:
        """The pixels ``(1, H, W, 3)`` of an image, the hash of its picture and the remarks; ``None`` where none are."""
        record = os.pread(self._file, self._size, index * self._size)
        if len(record) < self._size or xxhash.xxh64_digest(record[_HASH:]) != record[:_HASH]:
            return None
        picture, remarks = json.loads(record[_HASH : _HASH + _ABOUT].rstrip(b"\0"))
        pixels = np.frombuffer(record, np.uint8, offset=_HASH + _ABOUT).reshape(self._shape)
        return pixels, picture, tuple(remarks)

    def put(self, index: int, crop: Crop) -> None:
        """Keep what `get` gives."""
        pixels, picture, remarks = crop
        about = json.dumps([picture, remarks]).encode()
        if self._full or pixels.shape != self._shape or len(about) > _ABOUT:
            return
        body = about.ljust(_ABOUT, b"\0") + pixels.tobytes()
        try:
            os.pwrite(self._file, xxhash.xxh64_digest(body) + body, index * self._size)
        except OSError:  # no room: images are decoded again, as without it
            self._full = True


def kept_crops(folder: Path | None, images: str, count: int, preprocessing: Preprocessing) -> KeptCrops | None:
    """The crops of a set of images by one way to resize; ``None`` where they are not to be kept, or have no room.

    Args:
        folder: Where they are kept.
        images: Fingerprint of the images.
        count: How many there are.
        preprocessing: Resize and crop; what comes after these counts for nothing.
    """
    if folder is None or not hasattr(os, "pread"):
        return None
    height, width = preprocessing.crop_size
    make_folder(folder)
    if count * (_HASH + _ABOUT + height * width * 3) > _PART * shutil.disk_usage(folder).free:
        return None
    recipe = [str(getattr(preprocessing, name)) for name in _GEOMETRY]
    path = folder / f"{sha256_json([images, recipe])[:32]}.crops"
    path.touch()
    return KeptCrops(path, preprocessing)

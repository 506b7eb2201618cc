"""Images that are damaged, in every container that is read."""

import struct
import zlib

import numpy as np
import pytest
from harness import Target
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.models.images import UnreadableImage, flatten, open_image, remarks

RGBA = Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 20, 4), dtype=np.uint8))
RGB = RGBA.convert("RGB")
EXIF = b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)  # turned by 90 degrees
FILES = {
    "png": (RGBA, {"exif": EXIF}),
    "png_palette": (RGB.quantize(16), {"format": "PNG", "transparency": b"\0\x80\xff"}),
    "png_deep": (Image.fromarray(np.arange(240, dtype=np.uint16).reshape(12, 20) * 257), {"format": "PNG"}),
    "jpeg": (RGB, {"exif": EXIF, "icc_profile": bytes(200)}),
    "jpeg_progressive": (RGB.convert("CMYK"), {"format": "JPEG", "progressive": True}),
    "webp": (RGBA, {"exif": EXIF}),
    "webp_animation": (RGBA, {"format": "WEBP", "save_all": True, "append_images": [RGBA.rotate(180)]}),
    "gif": (RGBA, {"save_all": True, "append_images": [RGBA.rotate(180)]}),
    "tiff": (RGBA, {"save_all": True, "append_images": [RGB]}),
    "tiff_lzw": (RGB, {"format": "TIFF", "compression": "tiff_lzw"}),
    "tiff_jpeg": (RGB, {"format": "TIFF", "compression": "jpeg"}),
    "bmp": (RGB.quantize(16), {}),
    "avif": (RGBA, {"exif": EXIF}),
    "ico": (RGBA.resize((16, 16)), {"sizes": [(16, 16)]}),
    "ppm": (RGB, {}),
    "jpeg2000": (RGBA, {}),
}


def read(path):
    """The pixels; `extract` and `predict` pass over an `UnreadableImage` alone."""
    try:
        image = open_image(path, path.name)
    except InputError as error:
        assert isinstance(error, UnreadableImage), error
        raise
    return [np.asarray(flatten(image, (255, 255, 255))), remarks(image)]


def with_checksums(_, file):
    """Fit the checksums of a PNG's chunks to their content, as otherwise most damage ends there."""
    data = bytearray(file.read_bytes())
    place = 8
    while data[:4] == b"\x89PNG" and place + 12 <= len(data):
        end = place + 8 + int.from_bytes(data[place : place + 4], "big")
        data[end : end + 4] = struct.pack(">I", zlib.crc32(data[place + 4 : end]))
        place = end + 4
    file.write_bytes(data)


def target(name):
    image, options = FILES[name]
    options = {"format": name.upper()} | options

    def healthy(folder):
        image.copy().save(folder / "image", **options)
        return folder / "image"

    return Target(f"image_{name}", healthy, read, change_is_seen=False, count=30, reseal=with_checksums)


@pytest.mark.parametrize("target", [target(name) for name in FILES], ids=str)
def test_a_damaged_image_is_read_or_unreadable(fuzz, target):
    assert fuzz(target)["refused"]

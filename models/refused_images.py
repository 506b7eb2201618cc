"""Kinds of TIFF, JPEG 2000, GIF and PPM that PIL reads wrongly, or not at all: refused before they are decoded."""

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from ..core.errors import InputError

_ADVICE = "convert it to PNG"
_BITS, _COMPRESSION, _PHOTOMETRIC, _PLANAR, _COLOURS, _INKS, _EXTRA = 258, 259, 262, 284, 320, 332, 338
_SEPARATE, _CMYK_INKS, _ASSOCIATED = 2, 1, 1
# TIFF 6.0, and Adobe's deflate, packbits, the old deflate, LZMA and Zstandard: what libtiff of PIL's wheels reads.
_COMPRESSIONS = frozenset((1, 2, 3, 4, 5, 7, 8, 32773, 32946, 34925, 50000))
_TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# JPEG 2000, ITU-T T.800: A.5.1 (SIZ) and I.5.3 (boxes); 2**24 pixels take 0.4 GB to decode.
_SIZ, _SIZ_FIXED = b"\xff\x4f\xff\x51", 38
_EIGHT_BITS, _SIXTEEN_BITS = 7, 15
_J2K_MODES = ("L", "LA", "RGB", "RGBA", "I;16")
_COLOUR_SPACES = {16: "sRGB", 17: "grey", 18: "sYCC"}
_BLOCK = 1 << 20
_FREE_PIXELS, _PIXELS_A_BYTE, _MOST_BOXES = 2**24, 1000, 10_000
# YCbCrCoefficients and ReferenceBlackWhite of what PIL converts (TIFF 6.0, section 21).
_YCBCR = {529: (0.299, 0.587, 0.114), 532: (0.0, 255.0, 128.0, 255.0, 128.0, 255.0)}


def check_kind(image: Image.Image, file: BinaryIO) -> None:
    """Refuse what would be read wrongly.

    Args:
        image: Opened, and not decoded.
        file: What it was opened from; its place is kept.

    Raises:
        InputError: A TIFF, JPEG 2000, GIF or PPM of such a kind, or one that is far larger than its file can hold.
    """
    if image.format == "TIFF":
        _check_tiff(image)
    elif image.format == "JPEG2000":
        place = file.tell()
        _check_jpeg_2000(image, file)
        file.seek(place)
    elif image.format == "GIF":
        _check_gif(image)
    elif image.format == "PPM":
        place = file.tell()
        _check_ppm(image, file)
        file.seek(place)


def unread_kind(file: BinaryIO) -> str | None:
    """What a TIFF is that PIL does not open, in words; ``None`` of any other file."""
    file.seek(0)
    start = file.read(16)
    if not start.startswith(_TIFF_STARTS):
        return None
    if start[2:3] == b"+" or start[3:4] == b"+":
        tags = ImageFileDirectory_v2(start)
    else:
        tags = ImageFileDirectory_v2(start[:8])
    file.seek(tags.next)
    tags.load(file)
    bits = _numbers(tags.get(_BITS, 1))
    return (
        f"a TIFF of a kind that is not read ({len(bits)} x {max(bits)} bits, photometric {tags.get(_PHOTOMETRIC)}, "
        f"compression {tags.get(_COMPRESSION, 1)}); {_ADVICE}"
    )


def _check_tiff(image: Image.Image) -> None:
    tags: Any = image.tag_v2  # type: ignore[attr-defined]  # of PIL's TiffImageFile
    compression, bits = tags.get(_COMPRESSION, 1), _numbers(tags.get(_BITS, 1))
    if compression not in _COMPRESSIONS:
        raise InputError(f"a TIFF of compression {compression}, which is not read; {_ADVICE}")
    if tags.get(_PLANAR, 1) == _SEPARATE and len(bits) > 1:
        plain = image.mode in ("RGB", "RGBA", "CMYK") and set(bits) == {8}
        if not plain or _ASSOCIATED in _numbers(tags.get(_EXTRA, ())):
            raise InputError(
                f"a TIFF of separate planes, {len(bits)} x {max(bits)} bits, mode {image.mode}: only RGB, RGBA and "
                f"CMYK of 8 bits are read so; {_ADVICE}"
            )
    if image.mode == "CMYK" and (len(bits) != 4 or tags.get(_INKS, _CMYK_INKS) != _CMYK_INKS):
        raise InputError(f"a TIFF of {len(bits)} inks that are not those of CMYK; {_ADVICE}")
    if image.mode == "YCbCr":
        for tag, usual in _YCBCR.items():
            found = [float(value) for value in _numbers(tags.get(tag, usual))]
            if len(found) != len(usual) or not np.allclose(found, usual, atol=1e-3):
                raise InputError(
                    f"a TIFF in YCbCr whose tag {tag} is {found}, expected {list(usual)} (ITU-R BT.601 of full range), "
                    f"the only one that is read; {_ADVICE}"
                )
    colours = _numbers(tags.get(_COLOURS, ()))
    if image.mode in ("P", "PA") and 0 < max(colours, default=0) < 256:
        raise InputError(f"a TIFF whose palette has no level above 255, of 8 bits or of 16; {_ADVICE}")


def _check_gif(image: Image.Image) -> None:
    """What a first frame leaves of the canvas is transparent in browsers; in PIL only where an index is transparent."""
    (tile, *_) = image.tile  # type: ignore[attr-defined]  # of PIL's GifImageFile
    box = tuple(tile[1])
    if box != (0, 0, *image.size) and "transparency" not in image.info:
        raise InputError(
            f"a GIF whose first frame fills {box} of {image.size[0]} x {image.size[1]} pixels: browsers leave the rest "
            f"transparent, PIL paints it; {_ADVICE}"
        )


def _check_ppm(image: Image.Image, file: BinaryIO) -> None:
    """Samples above the largest value of the header, which PIL cuts (Netpbm: no sample exceeds maxval)."""
    (tile, *_) = image.tile  # type: ignore[attr-defined]  # of PIL's PpmImageFile
    if tile[0] != "ppm":  # its samples cannot be larger, or its decoder refuses them
        return
    most = tile[3][-1]
    dtype = np.dtype("u1" if most < 256 else ">u2")
    left = image.width * image.height * len(image.getbands()) * dtype.itemsize
    file.seek(tile[2])
    while left > 0 and (block := file.read(min(left, _BLOCK))):
        left -= len(block)
        found = np.frombuffer(block[: len(block) // dtype.itemsize * dtype.itemsize], dtype).max(initial=0)
        if found > most:
            raise InputError(f"damaged: a sample of {found}, expected at most {most}, the largest value of its header")


def _numbers(value: Any) -> Sequence[int]:
    return value if isinstance(value, tuple) else (value,)


def _check_jpeg_2000(image: Image.Image, file: BinaryIO) -> None:
    file.seek(0)
    start = file.read(4)
    spaces: list[int] = []
    if start != _SIZ:
        file.seek(0)
        spaces = _find_codestream(file)
    size, depths = _size_and_depths(file)
    if size != image.size:
        raise InputError(f"a JPEG 2000 of {size} pixels, but {image.size} in its header; get it again")
    allowed = [_EIGHT_BITS] * len(depths) if image.mode != "I;16" else [_SIXTEEN_BITS]
    if image.mode not in _J2K_MODES or depths != allowed:
        kinds = ", ".join(f"{1 + (depth & 127)}{' signed' if depth > 127 else ''}" for depth in depths[:4])
        raise InputError(
            f"a JPEG 2000 of {kinds} bits, mode {image.mode}: only 8 bits in every channel and grey of 16, without "
            f"sign and palette, are read; {_ADVICE}"
        )
    if any(space not in _COLOUR_SPACES for space in spaces):
        raise InputError(
            f"a JPEG 2000 of colour space {spaces[0]}: only {', '.join(_COLOUR_SPACES.values())} are read; {_ADVICE}"
        )
    pixels, held = image.width * image.height, file.seek(0, io.SEEK_END)
    if pixels > _FREE_PIXELS and pixels > _PIXELS_A_BYTE * held:
        raise InputError(
            f"{image.width} x {image.height} pixels in {held:,} bytes, more than {_PIXELS_A_BYTE} a byte; {_ADVICE}"
        )


def _size_and_depths(file: BinaryIO) -> tuple[tuple[int, int], list[int]]:
    """Width and height, and of every component its bits less one, and 128 where it has a sign: the bytes Ssiz."""
    fixed = file.read(_SIZ_FIXED)
    if len(fixed) < _SIZ_FIXED:
        raise InputError("cut before its pixels (a JPEG 2000)")
    right, bottom, left, top, count = struct.unpack(">4xIIII16xH", fixed)
    return (right - left, bottom - top), list(file.read(3 * count)[::3])


def _find_codestream(file: BinaryIO) -> list[int]:
    """Go behind the marker SIZ in a JP2 file, and give the enumerated colour spaces that stand before."""
    spaces: list[int] = []
    for kind, body in _boxes(file, None):
        if kind == b"jp2h":
            end = file.tell() + body
            for inner, length in _boxes(file, end):
                if inner == b"colr" and length >= 7:
                    method, space = struct.unpack(">B2xI", file.read(7))
                    spaces += [space] if method == 1 else []
                elif inner == b"pclr":
                    raise InputError(f"a JPEG 2000 with a palette, which is not read; {_ADVICE}")
        elif kind == b"jp2c":
            if file.read(4) == _SIZ:
                return spaces
            break
    raise InputError("a JPEG 2000 without a codestream; get it again")


def _boxes(file: BinaryIO, end: int | None) -> Iterator[tuple[bytes, int]]:
    """Kind and length of one box after the other; the file stands at its content."""
    for _step in range(_MOST_BOXES):
        if end is not None and file.tell() >= end:
            return
        head = file.read(8)
        if len(head) < 8:
            return
        length, kind = struct.unpack(">I4s", head)
        body = length - 8
        if length == 1:
            body = int.from_bytes(file.read(8), "big") - 16
        content = file.tell()
        yield kind, body
        if body < 0 or length == 0:  # to the end of the file
            return
        file.seek(content + body)

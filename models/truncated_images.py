"""Whether a file that decodes has its end: some decoders stop at the last pixel, or fill what is missing."""

import io
import re
from collections.abc import Callable
from typing import BinaryIO

import numpy as np
from PIL import Image

from ..core.errors import InputError
from .png_rows import check_rows

_BLOCK, _MOST_BLOCKS = 1 << 16, 1 << 23  # a GIF of 1 GiB has half as many
_PNG, _CRC_OF_IEND = b"\x89PNG\r\n\x1a\n", b"\xaeB`\x82"
# Not a byte of coded data, a filler or a restart: ITU-T T.81, B.1.1.
_MARKER = re.compile(rb"\xff([^\x00\x01\xff\xd0-\xd7])")
_EOI, _SOI = 0xD9, 0xD8


def check_end(image: Image.Image, file: BinaryIO) -> None:
    """Refuse a file that was cut where its decoder does not notice.

    PNG, alone or in an ICO, is read to its IEND with the checksums of all chunks, GIF to its trailer, JPEG to the end
    of its first image; what follows is of no matter. The decoders of other containers refuse what is cut.

    Args:
        image: The opened image, for its format.
        file: What it was opened from; it is read from its start.

    Raises:
        InputError: The end is not there. Of a PNG whose checksums do not hold, PIL raises `SyntaxError` or `OSError`.
    """
    check = _CHECKS.get(image.format or "")
    if check is not None:
        file.seek(0)
        check(file, image)


def _png(file: BinaryIO, decoded: Image.Image) -> None:
    start = file.tell()
    with Image.open(file, formats=["PNG"]) as image:
        image.verify()
    if file.read(4) != _CRC_OF_IEND:
        raise InputError("cut before its end (a PNG without its IEND)")
    file.seek(start)
    if _may_lack_rows(decoded):
        check_rows(file)


def _may_lack_rows(image: Image.Image) -> bool:
    """Whether rows may be missing: PIL writes one after the other into zeros, those of Adam7 in seven passes."""
    if image.format != "PNG" or image.info.get("interlace"):
        return True
    return not np.asarray(image.crop((0, image.height - 1, image.width, image.height))).any()


def _ico(file: BinaryIO, image: Image.Image) -> None:
    taken = image.ico.entry[0]  # type: ignore[attr-defined]  # of PIL's IcoImageFile, the largest first
    file.seek(taken.offset)
    content = file.read(taken.size)
    if content.startswith(_PNG):
        _png(io.BytesIO(content), image)


def _gif(file: BinaryIO, _: Image.Image) -> None:
    """The blocks of GIF89a, sections 17 to 27; what is none is passed over, as PIL does."""
    _skip_colours(file, file.read(13)[10:11])
    inside = False  # a row of data blocks, which ends with an empty one
    for _step in range(_MOST_BLOCKS):
        byte = file.read(1)
        if not byte:
            raise InputError("cut before its end (a GIF without its trailer)")
        if inside:
            file.seek(byte[0], io.SEEK_CUR)
            inside = byte != b"\0"
        elif byte == b";":
            return
        elif byte == b"!":
            file.read(1)
            inside = True
        elif byte == b",":
            _skip_colours(file, file.read(9)[8:9])
            file.read(1)
            inside = True
    raise InputError(f"more than {_MOST_BLOCKS:,} blocks, expected the end of the GIF")


def _skip_colours(file: BinaryIO, packed: bytes) -> None:
    if packed and packed[0] & 0x80:
        file.seek(3 << ((packed[0] & 7) + 1), io.SEEK_CUR)


def _jpeg(file: BinaryIO, _: Image.Image) -> None:
    """The segments of ITU-T T.81, annex B, by their lengths, and the coded data between them."""
    file.seek(2)
    for _step in range(_MOST_BLOCKS):
        marker = _next_marker(file)
        if marker == _EOI:
            return
        if marker in (None, _SOI):
            raise InputError("cut before its end (a JPEG without its EOI)")
        length = int.from_bytes(file.read(2), "big")
        file.seek(max(0, length - 2), io.SEEK_CUR)
    raise InputError(f"more than {_MOST_BLOCKS:,} segments, expected the end of the JPEG")


def _next_marker(file: BinaryIO) -> int | None:
    """The next marker's code; the file stands behind it. ``None`` at the end of the file."""
    last = b""
    while block := file.read(_BLOCK):
        found = _MARKER.search(last + block)
        if found:
            file.seek(found.end() - len(last) - len(block), io.SEEK_CUR)
            return found[1][0]
        last = block[-1:]
    return None


_CHECKS: dict[str, Callable[[BinaryIO, Image.Image], None]] = {
    "PNG": _png,
    "ICO": _ico,
    "GIF": _gif,
    "JPEG": _jpeg,
    "MPO": _jpeg,
}

"""How an image is to be turned, by its EXIF or XMP data."""

import struct
from numbers import Real
from typing import Any

from PIL import ExifTags, Image

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
UNCLEAR = "EXIF that does not read, taken as stored"


def upright(image: Image.Image) -> tuple[Image.Image, list[str]]:
    """Turn a decoded image as ``PIL.ImageOps.exif_transpose`` does, but leave one with damaged EXIF as it is stored.

    Returns:
        The image, and a remark where its EXIF is damaged and says no orientation.
    """
    try:
        orientation: Any = image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # noqa: BLE001 - PIL raises anything on damaged EXIF: struct.error, SyntaxError, ...
        return image, [UNCLEAR]
    if not _is_number(orientation) and not (orientation is None and _is_whole(image.info.get("exif"))):
        return image, [UNCLEAR]
    turn = _TURNS.get(orientation)
    return (image if turn is None else image.transpose(turn)), []


def _is_number(orientation: object) -> bool:
    """Whether it is a whole number, of whatever type: PIL turns by 6.0 and 6/1 too, and not by text or bytes."""
    return isinstance(orientation, Real) and float(orientation).is_integer()


def _is_whole(exif: bytes | None) -> bool:
    """Whether the first directory of EXIF data (TIFF 6.0, section 2) has no orientation that PIL passed over."""
    if not exif:
        return True
    data = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    try:
        (first,) = struct.unpack_from(f"{order}4xI", data)
        (count,) = struct.unpack_from(f"{order}H", data, first)
        tags = [struct.unpack_from(f"{order}H", data, first + 2 + 12 * entry)[0] for entry in range(count)]
    except struct.error:
        return False
    return ExifTags.Base.Orientation not in tags

"""One way from an image file to 8-bit pixels, for extraction, evaluation and prediction alike."""

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageFile, UnidentifiedImageError

from ..core.bounded_file import ToItsEnd
from ..core.errors import InputError
from ..core.files import regular_file
from ..core.printable import printable
from .image_to_rgb import check_colours, to_rgb
from .orientation import upright
from .quiet_libtiff import silence_libtiff
from .refused_images import check_kind, unread_kind
from .truncated_images import check_end

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "DIB", "AVIF", "ICO", "PPM", "JPEG2000")
MOST_PIXELS, MOST_BYTES, MOST_ASPECT = 2**27, 2**30, 100
_MOST = f"expected at most {MOST_PIXELS:,}; shrink it"
SEVERAL, TRANSPARENT = "further frames or pages, the first taken", "transparency"
_REMARKS = "headsmith"
# What Pillow warns of is said here: sizes are refused, and EXIF that does not read is a remark.
for _category in (UserWarning, Image.DecompressionBombWarning):
    warnings.filterwarnings("ignore", category=_category, module=r"PIL\.")
silence_libtiff()


class UnreadableImage(InputError):  # noqa: N818 - it is an input error; the name says which
    """A file that does not decode to an image."""


def open_image(
    source: str | Path | bytes, name: str, before: Callable[[int], object] = lambda pixels: None
) -> Image.Image:
    """Decode an image to 8 bits a channel, upright, as docs/images.md says.

    The first frame or page is taken, orientation is applied, ICC profiles are not. Nothing is decoded before the size
    is known to be within the limits.

    Args:
        source: A path, or the encoded bytes.
        name: How to call the image in an error.
        before: Called with the number of pixels before they are decoded.

    Returns:
        A PIL image in mode RGBA where a pixel is not opaque (see `flatten`), else RGB; see `remarks` for what else
        there was.

    Raises:
        UnreadableImage: No regular file, no image in one of `FORMATS`, a damaged one, one beyond the limits, or one
            whose mode does not say what its numbers mean.
    """
    try:
        if isinstance(source, bytes) and (wrong := _wrong_length(len(source))):
            raise InputError(wrong)
        file = io.BytesIO(source) if isinstance(source, bytes) else ToItsEnd(_file(source))
        with file, _opened(file) as image:
            _check_size(image)
            check_kind(image, file)
            before(image.width * image.height)
            found = [SEVERAL] if _has_more(image) else []
            raw = [str(tile[3]) for tile in image.tile]  # gone once it is decoded
            image.load()
            _check_size(image)
            check_end(image, file)
            check_colours(image)
            turned, unclear = upright(image)
            converted, notes = to_rgb(turned, image, raw)
    except InputError as error:
        text = str(error).removeprefix(f"{printable(str(source))}: ") if isinstance(source, str | Path) else str(error)
        raise UnreadableImage(f"{name}: {text}") from None
    except Image.DecompressionBombError as error:  # before its size is told
        count = next(iter(re.findall(r"\d+", str(error))), "too many")
        raise UnreadableImage(f"{name}: {count} pixels, {_MOST}") from None
    except Exception as error:  # noqa: BLE001 - decoders raise anything: RuntimeError (AVIF), struct.error, KeyError, ...
        raise UnreadableImage(f"{name}: not a readable image ({_reason(error)})") from None
    found += [TRANSPARENT] * (converted.mode == "RGBA") + unclear + notes
    converted.info = {_REMARKS: tuple(found)}
    return converted


def remarks(image: Image.Image) -> tuple[str, ...]:
    """What of an opened image was more than plain RGB or grey, in words: what was left out, or converted."""
    return tuple(image.info.get(_REMARKS, ()))


def described(found: Iterable[str], background: Sequence[int] | None) -> tuple[str, ...]:
    """Remarks with what was done about transparency.

    Args:
        found: See `remarks`.
        background: RGB that it was composited on, or ``None``: see `flatten`.
    """
    done = f"composited on {tuple(background)}" if background else "which was dropped"
    return tuple(f"{remark}, {done}" if remark == TRANSPARENT else remark for remark in found)


def flatten(image: Image.Image, background: tuple[int, int, int] | None) -> Image.Image:
    """An RGB image: transparency composited on a background, ``round((alpha * x + (255 - alpha) * background) / 255)``.

    Args:
        image: RGB or RGBA.
        background: RGB in 0..255; ``None`` drops alpha, so that hidden colours are seen.
    """
    if image.mode != "RGBA" or background is None:
        return image if image.mode == "RGB" else image.convert("RGB")
    flat = Image.new("RGB", image.size, background)
    flat.paste(image, mask=image)
    return flat


def _opened(file: BinaryIO) -> ImageFile.ImageFile:
    try:
        return Image.open(file, formats=FORMATS)
    except UnidentifiedImageError:
        kind = unread_kind(file)
        if kind is None:
            raise
        raise InputError(kind) from None


def _file(source: str | Path) -> Path:
    if not os.path.lexists(source):
        raise InputError(f"{source}: no such file")
    path = regular_file(source)
    if wrong := _wrong_length(path.stat().st_size):
        raise InputError(f"{path}: {wrong}")
    return path


def _wrong_length(length: int) -> str | None:
    if not length:
        return "not a readable image (the file is empty)"
    return f"is larger than {MOST_BYTES >> 20} MiB, expected an image" if length > MOST_BYTES else None


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if min(image.size) < 1 or width * height > MOST_PIXELS:
        raise InputError(f"{width} x {height} pixels, {_MOST}")
    if max(image.size) > MOST_ASPECT * min(image.size):
        raise InputError(f"{width} x {height} pixels, expected at most {MOST_ASPECT} times as long as wide; divide it")


def _has_more(image: Image.Image) -> bool:
    try:
        return bool(getattr(image, "is_animated", False))
    except Exception:  # noqa: BLE001 - PIL raises anything on a damaged next frame, which is not used
        return True
    finally:
        if image.tell():
            image.seek(0)


def _reason(error: Exception) -> str:
    text = (str(error).splitlines() or [""])[0]
    if not text or text.startswith("decoder error"):
        return "damaged, its decoder fails"
    return "not an image format that is read" if text.startswith("cannot identify") else text

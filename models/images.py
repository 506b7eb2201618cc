"""One way from an image file to RGB pixels, for extraction, evaluation and prediction alike."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from ..core.errors import InputError


class UnreadableImage(InputError):  # noqa: N818 - it is an input error; the name says which
    """A file that does not decode to an image."""


def open_image(source: str | Path | bytes, name: str) -> Image.Image:
    """Decode an image to 8-bit RGB, upright.

    The first frame of an animation is taken, EXIF orientation is applied, 16-bit grey is scaled to 8 bits, and
    palettes, grey and CMYK are converted. Transparency is dropped, as timm and torchvision do.

    Args:
        source: A path, or the encoded bytes.
        name: How to call the image in an error.

    Returns:
        A PIL image in mode RGB.

    Raises:
        UnreadableImage: Not an image, truncated, or larger than PIL's decompression-bomb limit.
    """
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            image.load()
            return _to_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise UnreadableImage(f"{name}: no such file") from None
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UnreadableImage(f"{name}: not a readable image ({_reason(error)})") from None


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey; PIL's own conversion would clip at 255
        wide = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray((wide // 257).astype(np.uint8))
    if image.mode == "P":
        image = image.convert("RGBA")  # palettes with transparency warn on the way to RGB
    return image.convert("RGB")


def _reason(error: Exception) -> str:
    text = str(error).split("\n", maxsplit=1)[0]
    return "not an image format that PIL knows" if text.startswith("cannot identify") else text

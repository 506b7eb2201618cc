"""From the modes of PIL to 8-bit RGB, or RGBA where there is transparency."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from ..core.errors import InputError

PLAIN = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")
_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339  # TIFF tags
_WHITE_IS_ZERO, _SIGNED = 0, 2
_ADVICE = "convert it to 8 or 16 bits without sign"


def check_colours(image: Image.Image) -> None:
    """Refuse a decoded image whose palette lacks colours, or whose alpha programs differ about.

    Raises:
        InputError: An index beyond the palette, or a BMP or ICO whose alpha is 0 everywhere.
    """
    if image.mode == "P" and image.palette is not None:
        colours, highest = len(image.palette.palette) // len(image.palette.mode), image.getextrema()[1]
        if highest >= colours:  # type: ignore[operator]  # one band, so one pair of numbers
            raise InputError(f"damaged: an index of {highest}, expected less than the {colours} colours of its palette")
    if image.format in ("BMP", "DIB", "ICO") and image.mode == "RGBA" and image.getchannel("A").getextrema() == (0, 0):
        raise InputError("alpha is 0 everywhere, which some programs take for opaque; save it without alpha")


def to_rgb(image: Image.Image, source: Image.Image, raw: Sequence[str]) -> tuple[Image.Image, list[str]]:
    """Convert an image of any mode.

    Args:
        image: The pixels.
        source: The opened file that they come from, for its format and its tags.
        raw: The kinds of pixels inside the file, as PIL calls them.

    Returns:
        The image in RGB, or in RGBA where a pixel is not opaque; and remarks.

    Raises:
        InputError: Its numbers have no range that the file says.
    """
    deep = any(";16" in kind for kind in raw)
    if image.mode == "F" or (image.mode == "I" and source.format != "PPM"):
        kind = "floating-point" if image.mode == "F" else "32-bit or signed"
        raise InputError(f"mode {image.mode}: {kind} pixels, whose range the file does not say; {_ADVICE}")
    if image.mode == "L" and _tag(source, _SAMPLE_FORMAT) == _SIGNED:
        raise InputError(f"mode L: signed 8-bit pixels, whose range the file does not say; {_ADVICE}")
    mode = "grey with alpha" if any(kind.startswith("LA") for kind in raw) else image.mode
    found = [] if image.mode in PLAIN and not deep else [_named(mode, deep)]
    if image.mode.startswith("I"):
        return _opaque_or_not(_from_wide_grey(image, source)), found
    transparency = image.info.get("transparency")
    if image.mode == "RGB" and deep and transparency is not None:
        raise InputError("16-bit RGB with a transparent colour, which PIL cannot tell from its neighbours; use alpha")
    if image.mode == "L" and isinstance(transparency, int):  # PIL scales 2- and 4-bit pixels to 8, but not this
        image.info["transparency"] = transparency * {"L;2": 85, "L;4": 17}.get(raw[0] if raw else "", 1)
    if image.mode == "La":
        image = image.convert("LA")
    return _opaque_or_not(image.convert("RGBA") if image.has_transparency_data else image), found


def _named(mode: str, deep: bool) -> str:
    kind = "16-bit grey" if mode.startswith("I") else f"16-bit {mode}" if deep else mode
    return f"{kind} pixels, converted"


def _from_wide_grey(image: Image.Image, source: Image.Image) -> Image.Image:
    """0..65535, or 0..4095 of a 12-bit TIFF, to 0..255; PIL's own conversion would clip."""
    wide = np.asarray(image).astype(np.int32)  # then in place, for the sake of large images
    if _tag(source, _PHOTOMETRIC) == _WHITE_IS_ZERO:  # PIL turns 8-bit pixels round, but not these
        np.subtract(65535, wide, out=wide)
    hidden = image.info.get("transparency")
    alpha = Image.fromarray((wide != hidden).astype(np.uint8) * np.uint8(255)) if isinstance(hidden, int) else None
    if _tag(source, _BITS) == 12:
        wide *= 255
        wide //= 4095
    else:
        wide //= 257
    grey = Image.fromarray(wide.clip(0, 255, out=wide).astype(np.uint8))
    return grey if alpha is None else Image.merge("LA", (grey, alpha)).convert("RGBA")


def _opaque_or_not(image: Image.Image) -> Image.Image:
    if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
        return image
    return image if image.mode == "RGB" else image.convert("RGB")


def _tag(source: Image.Image, number: int) -> int | None:
    """The first value of a TIFF's tag."""
    value = getattr(source, "tag_v2", {}).get(number)
    return value[0] if isinstance(value, tuple) else value

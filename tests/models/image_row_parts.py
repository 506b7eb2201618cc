"""Contents of image files and what they must become, in the words of the rows of docs/images.md."""

import struct
from typing import NamedTuple

from image_files import saved, tiff
from PIL import Image

RED, GREEN, BLUE, BLACK, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)


class Row(NamedTuple):
    container: str
    pixels: str
    content: bytes
    expected: list[tuple[int, int, int]] | str  # the first pixels, or what the refusal says
    remarks: tuple[str, ...] = ()
    tolerance: int = 0


def grey(*levels: int) -> list[tuple[int, int, int]]:
    return [(level,) * 3 for level in levels]


def on_white(colour: tuple[int, int, int], alpha: int) -> tuple[int, ...]:
    return tuple(round((alpha * level + (255 - alpha) * 255) / 255) for level in colour)


def half(colour: tuple[int, int, int]) -> Image.Image:
    """16 x 16 pixels, transparent but for one colour in the upper left 8 x 8."""
    image = Image.new("RGBA", (16, 16), (*BLUE, 0))
    image.paste((*colour, 255), (0, 0, 8, 8))
    return image


def frames(mode: str = "RGB") -> dict[str, object]:
    return {"save_all": True, "append_images": [Image.new(mode, (16, 16), BLUE), Image.new(mode, (16, 16), GREEN)]}


def wide(order: str, *values: int) -> bytes:
    return struct.pack(f"{order}{len(values)}H", *values)


def without_adobe(content: bytes) -> bytes:
    """A JPEG without its APP14 segment (ITU-T T.872, 6.5.3)."""
    start = content.index(b"\xff\xee\0\x0eAdobe")
    return content[:start] + content[start + 16 :]


def deep_jpeg_2000(mode: str, depth: int) -> bytes:
    """A JPEG 2000 whose SIZ says another depth in every component (ITU-T T.800, A.5.1); its pixels are of no matter."""
    content = bytearray(saved(Image.new(mode, (16, 16)), "JPEG2000"))
    start = content.index(b"\xff\x4f\xff\x51") + 4
    for component in range(int.from_bytes(content[start + 36 : start + 38])):
        content[start + 38 + 3 * component] = depth
    return bytes(content)


def on_canvas(content: bytes) -> bytes:
    """A GIF whose canvas is twice as wide and high as its frame (GIF89a, section 18)."""
    width, height = struct.unpack_from("<2H", content, 6)
    return content[:6] + struct.pack("<2H", 2 * width, 2 * height) + content[10:]


def planes(bits: int, count: int, photometric: int, data: bytes) -> bytes:
    """A TIFF of one pixel, a strip for every channel (TIFF 6.0, PlanarConfiguration)."""
    size = bits // 8
    strips = {"t273": [8 + size * place for place in range(count)], "t279": [size] * count}
    return tiff((1, 1), [bits] * count, photometric, data, t284=[2], **strips)


def made(kind: str) -> str:
    return f"{kind} pixels, converted"


SEE, MORE = ("transparency",), ("further frames or pages, the first taken",)
FULL, TURNED = Image.new("RGB", (16, 16), RED), Image.new("RGB", (16, 8), RED)
TURNED.paste(BLUE, (8, 0, 16, 8))
DEEP, UNREAD = (made("16-bit grey"),), "whose range the file does not say"

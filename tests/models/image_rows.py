"""Every container and kind of pixels, and what it must become: the rows of docs/images.md.

Values follow from the files' specifications and, where a conversion is PIL's own, from Pillow's documentation.
"""

import struct
from typing import NamedTuple

from image_files import bmp32, exif, png, saved, tiff
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
CMYK = saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG")
PALETTE = bytes([*RED, *GREEN, *BLUE, *WHITE])
COLOURS = [level for channel in range(3) for level in [0, 65535, 257, 128 * 257] + [0] * 252][: 3 * 256]
DEEP, UNREAD = (made("16-bit grey"),), "whose range the file does not say"

ROWS = [
    Row("PNG", "grey, 1 bit", png((2, 1), 1, 0, [b"\x40"]), grey(0, 255)),
    Row("PNG", "grey, 2 bits", png((4, 1), 2, 0, [b"\x1b"]), grey(0, 85, 170, 255)),
    Row("PNG", "grey, 4 bits", png((2, 1), 4, 0, [b"\x5a"]), grey(85, 170)),
    Row("PNG", "grey, 8 bits", png((2, 1), 8, 0, [b"\x05\xfa"]), grey(5, 250)),
    Row("PNG", "grey, 16 bits", png((4, 1), 16, 0, [wide(">", 0, 257, 128 * 257, 65535)]), grey(0, 1, 128, 255), DEEP),
    Row("PNG", "grey, 1 bit, a level transparent", png((2, 1), 1, 0, [b"\x40"], tRNS=b"\0\0"), grey(255, 255), SEE),
    Row(
        "PNG",
        "grey, 2 bits, a level transparent",
        png((4, 1), 2, 0, [b"\x1b"], tRNS=b"\0\1"),
        grey(0, 255, 170, 255),
        SEE,
    ),
    Row("PNG", "grey, 4 bits, a level transparent", png((2, 1), 4, 0, [b"\x5a"], tRNS=b"\0\5"), grey(255, 170), SEE),
    Row(
        "PNG", "grey, 8 bits, a level transparent", png((2, 1), 8, 0, [b"\x05\xfa"], tRNS=b"\0\5"), grey(255, 250), SEE
    ),
    Row(
        "PNG",
        "grey, 16 bits, a level transparent",
        png((2, 1), 16, 0, [wide(">", 1000, 1001)], tRNS=wide(">", 1000)),
        grey(255, 3),
        (*SEE, *DEEP),
    ),
    Row("PNG", "grey with alpha, 8 bits", png((2, 1), 8, 4, [bytes([0, 64, 7, 255])]), grey(191, 7), SEE),
    Row(
        "PNG",
        "grey with alpha, 16 bits",
        png((2, 1), 16, 4, [wide(">", 0, 0x4000, 0x0700, 0xFFFF)]),
        grey(191, 7),
        (*SEE, made("16-bit grey with alpha")),
    ),
    Row("PNG", "RGB, 8 bits", png((2, 1), 8, 2, [bytes([1, 2, 3, 4, 5, 6])]), [(1, 2, 3), (4, 5, 6)]),
    Row(
        "PNG",
        "RGB, 8 bits, a colour transparent",
        png((2, 1), 8, 2, [bytes([1, 2, 3, 4, 5, 6])], tRNS=wide(">", 1, 2, 3)),
        [WHITE, (4, 5, 6)],
        SEE,
    ),
    Row(
        "PNG",
        "RGB, 16 bits",
        png((2, 1), 16, 2, [wide(">", 255, 512, 65535, 257, 65279, 768)]),
        [(0, 2, 255), (1, 254, 3)],
        (made("16-bit RGB"),),
    ),
    Row(
        "PNG",
        "RGB, 16 bits, a colour transparent",
        png((1, 1), 16, 2, [wide(">", 256, 512, 768)], tRNS=wide(">", 256, 512, 768)),
        "transparent colour",
    ),
    Row(
        "PNG",
        "RGBA, 8 bits",
        png((2, 1), 8, 6, [bytes([255, 0, 0, 0, 255, 0, 0, 100])]),
        [WHITE, on_white(RED, 100)],
        SEE,
    ),
    Row("PNG", "RGBA, 8 bits, opaque", png((1, 1), 8, 6, [bytes([9, 8, 7, 255])]), [(9, 8, 7)]),
    Row(
        "PNG",
        "RGBA, 16 bits",
        png((1, 1), 16, 6, [wide(">", 65535, 0, 0, 0x6400)]),
        [on_white(RED, 100)],
        (*SEE, made("16-bit RGBA")),
    ),
    Row("PNG", "palette", png((4, 1), 2, 3, [b"\x1b"], PLTE=PALETTE), [RED, GREEN, BLUE, WHITE]),
    Row(
        "PNG",
        "palette with alpha",
        png((4, 1), 2, 3, [b"\x1b"], PLTE=PALETTE, tRNS=b"\x64\x00"),
        [on_white(RED, 100), WHITE, BLUE, WHITE],
        SEE,
    ),
    Row(
        "PNG",
        "palette, an index transparent",
        png((4, 1), 2, 3, [b"\x1b"], PLTE=PALETTE, tRNS=b"\xff\xff\x00"),
        [RED, GREEN, WHITE, WHITE],
        SEE,
    ),
    Row("PNG", "palette, an index beyond it", png((4, 1), 2, 3, [b"\x1b"], PLTE=PALETTE[:9]), "an index of 3"),
    Row("PNG", "animation", saved(FULL, "PNG", **frames()), [RED], MORE),
    Row("PNG", "EXIF orientation", saved(TURNED, "PNG", exif=exif(6)), [RED] * 8),
    Row("JPEG", "grey", saved(Image.new("L", (8, 8), 77), "JPEG"), grey(77)),
    Row("JPEG", "YCbCr", saved(FULL, "JPEG"), [RED], (), 1),
    Row(
        "JPEG",
        "CMYK, inverted as Adobe does",
        CMYK,
        [RED],
        (made("CMYK"),),
        2,
    ),
    Row("JPEG", "CMYK without Adobe's marker", without_adobe(CMYK), [RED], (made("CMYK"),), 2),
    Row("JPEG", "RGB", saved(FULL, "JPEG", keep_rgb=True), [RED], (), 1),
    Row("JPEG", "EXIF orientation", saved(TURNED, "JPEG", exif=exif(6), quality=100, subsampling=0), [RED] * 8, (), 2),
    Row("JPEG", "several images (MPO)", saved(FULL, "MPO", **frames()), [RED], MORE, 1),
    Row("WebP", "RGB", saved(FULL, "WEBP", lossless=True), [RED]),
    Row("WebP", "RGBA", saved(half(RED), "WEBP", lossless=True), [RED] * 8 + [WHITE] * 8, SEE),
    Row("WebP", "animation", saved(FULL, "WEBP", lossless=True, **frames()), [RED], MORE),
    Row("WebP", "EXIF orientation", saved(TURNED, "WEBP", lossless=True, exif=exif(6)), [RED] * 8),
    Row("GIF", "palette", saved(FULL, "GIF"), [RED]),
    Row("GIF", "palette, an index transparent", saved(half(RED), "GIF"), [RED] * 8 + [WHITE] * 8, SEE),
    Row(
        "GIF",
        "a first frame smaller than the canvas",
        on_canvas(saved(FULL, "GIF")),
        "PIL paints it; convert it to PNG",
    ),
    Row("GIF", "the same, an index transparent", on_canvas(saved(half(RED), "GIF")), [RED] * 8 + [WHITE] * 24, SEE),
    Row("GIF", "animation", saved(FULL, "GIF", **frames()), [RED], MORE),
    Row("TIFF", "black and white, 1 bit", tiff((2, 1), [1], 1, b"\x40"), grey(0, 255)),
    Row("TIFF", "black and white, 1 bit, white is zero", tiff((2, 1), [1], 0, b"\x40"), grey(255, 0)),
    Row("TIFF", "grey, 4 bits", tiff((2, 1), [4], 1, b"\x5a"), grey(85, 170)),
    Row("TIFF", "grey, 8 bits", tiff((2, 1), [8], 1, b"\x05\xfa"), grey(5, 250)),
    Row("TIFF", "grey, 8 bits, white is zero", tiff((2, 1), [8], 0, b"\x05\xfa"), grey(250, 5)),
    Row("TIFF", "grey, 8 bits with sign", tiff((2, 1), [8], 1, b"\x05\xfa", kind=2), UNREAD),
    Row("TIFF", "grey, 12 bits", tiff((2, 1), [12], 1, b"\xff\xf8\x08"), grey(255, 128), DEEP),
    Row(
        "TIFF",
        "grey, 16 bits, little endian (I;16)",
        tiff((3, 1), [16], 1, wide("<", 257, 128 * 257, 65535)),
        grey(1, 128, 255),
        DEEP,
    ),
    Row(
        "TIFF",
        "grey, 16 bits, big endian (I;16B)",
        tiff((3, 1), [16], 1, wide(">", 257, 128 * 257, 65535), order=">"),
        grey(1, 128, 255),
        DEEP,
    ),
    Row(
        "TIFF",
        "grey, 16 bits, little endian, white is zero",
        tiff((2, 1), [16], 0, wide("<", 0, 65535)),
        grey(255, 0),
        DEEP,
    ),
    Row(
        "TIFF",
        "grey, 16 bits, big endian, white is zero",
        tiff((2, 1), [16], 0, wide(">", 0, 65535), order=">"),
        r"kind that is not read \(1 x 16 bits, photometric 0, compression 1\)",
    ),
    Row("TIFF", "grey, 16 bits with sign (I)", tiff((2, 1), [16], 1, struct.pack("<2h", -5, 5), kind=2), UNREAD),
    Row("TIFF", "grey, 32 bits (I)", tiff((2, 1), [32], 1, struct.pack("<2I", 5, 2**31)), UNREAD),
    Row("TIFF", "grey, 32 bits with sign (I)", tiff((2, 1), [32], 1, struct.pack("<2i", -5, 5), kind=2), UNREAD),
    Row("TIFF", "grey, floating point (F)", tiff((2, 1), [32], 1, struct.pack("<2f", 0.25, 1.0), kind=3), UNREAD),
    Row("TIFF", "grey with alpha (LA)", tiff((2, 1), [8, 8], 1, bytes([0, 64, 7, 255]), t338=[2]), grey(191, 7), SEE),
    Row(
        "TIFF",
        "grey with associated alpha (La)",
        tiff((2, 1), [8, 8], 1, bytes([0, 64, 7, 255]), t338=[1]),
        grey(191, 7),
        (*SEE, made("La")),
    ),
    Row("TIFF", "palette", tiff((3, 1), [8], 3, bytes([1, 2, 3]), t320=COLOURS), [(255,) * 3, (1,) * 3, (128,) * 3]),
    Row(
        "TIFF",
        "palette with alpha (PA)",
        tiff((2, 1), [8, 8], 3, bytes([3, 255, 2, 0]), t320=COLOURS, t338=[2]),
        [(128,) * 3, WHITE],
        SEE,
    ),
    Row(
        "TIFF",
        "palette of 8-bit levels",
        tiff((1, 1), [8], 3, b"\1", t320=[0, 255, 7] * 256),
        "palette has no level above 255",
    ),
    Row("TIFF", "RGB, 8 bits", tiff((2, 1), [8] * 3, 2, bytes([1, 2, 3, 4, 5, 6])), [(1, 2, 3), (4, 5, 6)]),
    Row(
        "TIFF",
        "RGB, 16 bits",
        tiff((1, 1), [16] * 3, 2, wide("<", 255, 512, 65535)),
        [(0, 2, 255)],
        (made("16-bit RGB"),),
    ),
    Row("TIFF", "RGB, 8 bits, separate planes", planes(8, 3, 2, bytes([1, 2, 3])), [(1, 2, 3)]),
    Row("TIFF", "RGB, 16 bits, separate planes", planes(16, 3, 2, wide("<", 255, 512, 65535)), "separate planes"),
    Row(
        "TIFF",
        "RGB and a channel of no meaning (RGBX)",
        tiff((1, 1), [8] * 4, 2, bytes([1, 2, 3, 4]), t338=[0]),
        [(1, 2, 3)],
    ),
    Row(
        "TIFF",
        "RGBA",
        tiff((2, 1), [8] * 4, 2, bytes([255, 0, 0, 0, 255, 0, 0, 100]), t338=[2]),
        [WHITE, on_white(RED, 100)],
        SEE,
    ),
    Row(
        "TIFF",
        "RGBA, associated alpha (RGBa)",
        tiff((2, 1), [8] * 4, 2, bytes([100, 0, 0, 100, 9, 8, 7, 255]), t338=[1]),
        [on_white(RED, 100), (9, 8, 7)],
        SEE,
    ),
    Row(
        "TIFF",
        "CMYK",
        tiff((2, 1), [8] * 4, 5, bytes([0, 255, 255, 0, 100, 0, 50, 128])),
        [RED, (77, 127, 102)],
        (made("CMYK"),),
    ),
    Row("TIFF", "CMYK, 16 bits, separate planes", planes(16, 4, 5, wide("<", 9, 9, 9, 9)), "separate planes"),
    Row("TIFF", "other inks than CMYK", tiff((1, 1), [8] * 4, 5, bytes(4), t332=[2]), "not those of CMYK"),
    Row("TIFF", "five inks", tiff((1, 1), [8] * 5, 5, bytes(5), t338=[0]), "5 inks"),
    Row(
        "TIFF",
        "YCbCr",
        tiff((2, 1), [8] * 3, 6, bytes([76, 85, 255, 128, 128, 128]), t530=[1, 1]),
        [RED, (128,) * 3],
        (made("YCbCr"),),
        1,
    ),
    Row(
        "TIFF",
        "YCbCr with other coefficients or another black and white",
        tiff((2, 1), [8] * 3, 6, bytes([235, 128, 128, 16, 128, 128]), t530=[1, 1], t532=[16, 235, 128, 240, 128, 240]),
        r"tag 532 is \[16\.0, 235\.0",
    ),
    Row(
        "TIFF",
        "LAB",
        tiff((2, 1), [8] * 3, 8, bytes([255, 0, 0, 0, 0, 0])),
        [WHITE, BLACK],
        (made("LAB"),),
        1,
    ),
    Row("TIFF", "LAB, separate planes", planes(8, 3, 8, bytes([255, 0, 0])), "separate planes"),
    Row("TIFF", "several pages", saved(FULL, "TIFF", **frames()), [RED], MORE),
    Row("TIFF", "orientation", tiff((2, 1), [8] * 3, 2, bytes([*RED, *BLUE]), t274=[3]), [BLUE, RED]),
    Row("BMP", "palette", saved(FULL.convert("P"), "BMP"), [RED]),
    Row("BMP", "RGB", saved(FULL, "BMP"), [RED]),
    Row("BMP", "32 bits without alpha", bmp32((1, 1), bytes([3, 2, 1, 0])), [(1, 2, 3)]),
    Row(
        "BMP",
        "32 bits with alpha",
        bmp32((2, 1), bytes([0, 0, 255, 100, 3, 2, 1, 255]), (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
        [on_white(RED, 100), (1, 2, 3)],
        SEE,
    ),
    Row(
        "BMP",
        "32 bits with alpha, 0 everywhere",
        bmp32((1, 1), bytes([3, 2, 1, 0]), (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
        "alpha is 0 everywhere",
    ),
    Row("ICO", "RGBA", saved(half(RED), "ICO", sizes=[(16, 16)]), [RED] * 8 + [WHITE] * 8, SEE),
    Row(
        "ICO",
        "RGBA, alpha 0 everywhere",
        saved(Image.new("RGBA", (16, 16)), "ICO", sizes=[(16, 16)]),
        "alpha is 0 everywhere",
    ),
    Row("AVIF", "RGB", saved(FULL, "AVIF", quality=100), [RED], (), 3),
    Row("AVIF", "RGBA", saved(half(RED), "AVIF", quality=100), [RED] * 7, SEE, 6),
    Row("AVIF", "sequence", saved(FULL, "AVIF", quality=100, **frames()), [RED], MORE, 3),
    Row("AVIF", "orientation", saved(TURNED, "AVIF", quality=100, subsampling="4:4:4", exif=exif(6)), [RED] * 8, (), 3),
    Row("PPM", "black and white (PBM)", b"P1 2 1 0 1", grey(255, 0)),
    Row("PPM", "grey (PGM)", b"P5 2 1 255 \x05\xfa", grey(5, 250)),
    Row("PPM", "grey (PGM), another largest value", b"P5 2 1 15 \x05\x0f", grey(85, 255)),
    Row("PPM", "grey (PGM), 16 bits (I)", b"P5 2 1 65535 " + wide(">", 128 * 257, 65535), grey(128, 255), DEEP),
    Row("PPM", "grey (PGM), a sample above the largest value", b"P5 2 1 15 \x05\x10", "a sample of 16, .* at most 15"),
    Row("PPM", "RGB", b"P6 1 1 255 \x01\x02\x03", [(1, 2, 3)]),
    Row("PPM", "RGB, a sample above the largest value", b"P6 1 1 100 \x01\x02\x65", "a sample of 101, .* at most 100"),
    Row("PPM", "floating point (PFM, F)", b"Pf 1 1 -1.0\n" + struct.pack("<f", 0.5), UNREAD),
    Row("JPEG 2000", "RGB", saved(FULL, "JPEG2000"), [RED]),
    Row("JPEG 2000", "RGBA", saved(half(RED), "JPEG2000"), [RED] * 8 + [WHITE] * 8, SEE),
    Row("JPEG 2000", "grey, 16 bits (I;16)", saved(Image.new("I;16", (8, 8), 128 * 257), "JPEG2000"), grey(128), DEEP),
    Row("JPEG 2000", "grey, other depths", deep_jpeg_2000("L", 11), "2000 of 12 bits"),
    Row("JPEG 2000", "grey, with sign", deep_jpeg_2000("I;16", 143), "2000 of 16 signed bits"),
    Row("JPEG 2000", "RGB, other depths", deep_jpeg_2000("RGB", 15), "2000 of 16, 16, 16 bits"),
    Row("JPEG 2000", "RGBA, other depths", deep_jpeg_2000("RGBA", 3), "2000 of 4, 4, 4, 4 bits"),
]

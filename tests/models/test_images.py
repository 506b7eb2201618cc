import io
import os
import re
import struct
import warnings
import zlib
from dataclasses import replace

import numpy as np
import pytest
from image_files import exif, png
from PIL import Image, ImageCms, ImageOps, TiffTags
from PIL.PngImagePlugin import PngImageFile

from headsmith.models import Preprocessing
from headsmith.models.images import UnreadableImage, open_image, remarks

RED = (255, 0, 0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def two_tone(mode: str = "RGB") -> Image.Image:
    """Red on the left, blue on the right; 8 x 4."""
    image = Image.new("RGB", (8, 4), RED)
    image.paste((0, 0, 255), (4, 0, 8, 4))
    return image.convert(mode)


def test_exif_orientation_is_applied():
    turned = exif(6)  # the camera was turned: rotate by 90 degrees clockwise to see it upright
    image = open_image(encoded(two_tone(), "PNG", exif=turned), "x.png")
    assert image.size == (4, 8)
    assert image.getpixel((0, 0)) == RED
    assert image.getpixel((0, 7)) == (0, 0, 255)


def test_sixteen_bit_grey_is_scaled_not_clipped():
    levels = np.array([[0, 257, 128 * 257, 65535]], dtype=np.uint16)
    image = open_image(encoded(Image.fromarray(levels), "PNG"), "x.png")
    assert np.asarray(image)[0].tolist() == [[0] * 3, [1] * 3, [128] * 3, [255] * 3]


@pytest.mark.parametrize("mode", ["P", "L", "LA", "RGBA", "1"])
def test_png_modes_become_rgb(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = open_image(encoded(two_tone(mode), "PNG"), "x.png")
    assert image.mode == "RGB"
    assert image.size == (8, 4)
    if mode in ("P", "RGBA"):
        assert image.getpixel((0, 0)) == RED


def test_cmyk_jpeg_becomes_rgb():
    image = open_image(encoded(two_tone("CMYK"), "JPEG", quality=100), "x.jpg")
    red, green, blue = image.getpixel((1, 1))
    assert red > 240
    assert green < 15
    assert blue < 15


def test_animated_gif_gives_its_first_frame():
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, (0, 255, 0))]
    image = open_image(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]), "x.gif")
    assert image.getpixel((0, 0)) == RED


def noise() -> Image.Image:
    """64 x 64 pixels that no format compresses to nothing."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"just text", "not an image format", id="text"),
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(png((1, 1), 8, 3, [b"\0"]), "damaged, its decoder fails", id="no palette"),
        pytest.param(encoded(noise(), "PNG")[:900], "", id="truncated PNG"),
        pytest.param(encoded(noise(), "JPEG")[:900], "truncated", id="truncated JPEG"),
    ],
)
def test_what_does_not_decode_is_named(content, reason):
    with pytest.raises(UnreadableImage, match=rf"photos/cat\.jpg: not a readable image .*{reason}"):
        open_image(content, "photos/cat.jpg")


def test_missing_file(tmp_path):
    with pytest.raises(UnreadableImage, match="gone.png: no such file"):
        open_image(tmp_path / "gone.png", "gone.png")


@pytest.mark.parametrize("size", [(1, 100_000), (100_000, 1), (3, 400)])
def test_long_strips_are_refused_before_they_are_scaled(size):
    with pytest.raises(UnreadableImage, match=rf"strip.png: {size[0]} x {size[1]} pixels, expected at most 100 times"):
        open_image(encoded(Image.new("L", size), "PNG"), "strip.png")
    assert open_image(encoded(Image.new("L", (4, 400)), "PNG"), "x").size == (4, 400)


@pytest.mark.parametrize("size", [(13_000, 13_000), (12_000, 11_999), (60_000, 50_000)])
def test_what_is_too_large_is_refused_before_it_is_decoded(size):
    decoded = []
    with warnings.catch_warnings(), pytest.raises(UnreadableImage, match="pixels"):
        warnings.simplefilter("ignore")
        open_image(png(size, 1, 0, [b"\0"]), "huge.png", decoded.append)
    assert not decoded


def test_the_number_of_pixels_is_told_before_they_are_decoded():
    told = []
    with pytest.raises(UnreadableImage):
        open_image(encoded(noise(), "PNG")[:900], "x.png", told.append)
    assert told == [64 * 64]


@pytest.mark.parametrize("format", ["AVIF", "WEBP", "GIF", "TIFF", "BMP", "ICO", "PPM", "JPEG2000"])
@pytest.mark.parametrize("damage", ["cut", "zeroed"])
def test_damage_of_any_kind_is_unreadable(format, damage):
    content = encoded(noise().convert("RGB"), format)
    half = len(content) // 2
    damaged = content[: half // 2] if damage == "cut" else b"\0" * half + content[half:]
    with pytest.raises(UnreadableImage, match=r"^photo: "):
        open_image(damaged, "photo")


ERRORS = (RuntimeError, KeyError, TypeError, MemoryError, zlib.error, UnboundLocalError, Warning)


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_decoder_raises_is_unreadable(error, monkeypatch):
    def fail(*_):
        raise error("odd")

    monkeypatch.setattr(PngImageFile, "load", fail)
    with pytest.raises(UnreadableImage, match="x.png: not a readable image .*odd"):
        open_image(encoded(noise(), "PNG"), "x.png")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    for path, kind in (("pipe.png", "a named pipe"), ("folder.png", "a folder"), ("/dev/zero", "a device")):
        with pytest.raises(UnreadableImage, match=f"x.png: is {kind}, expected a regular file"):
            open_image(tmp_path / path, "x.png")
    with (tmp_path / "sparse.png").open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(UnreadableImage, match="x.png: is larger than 1024 MiB"):
        open_image(tmp_path / "sparse.png", "x.png")


SIX = exif(6)
DAMAGED = [b"Exif\0\0garbage", SIX[:12], SIX[:16], SIX.replace(b"\x03\0", b"\x63\0"), b"II*\0\xff\xff\xff\xff"]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_exif_leaves_the_image_as_it_is_stored_and_is_told(damaged):
    image = open_image(encoded(two_tone(), "PNG", exif=damaged), "x.png")
    assert image.size == (8, 4)
    assert image.getpixel((0, 0)) == RED
    assert remarks(image) == ("EXIF that does not read, taken as stored",)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (TiffTags.FLOAT, 6.0, True),
        (TiffTags.DOUBLE, 6.0, True),
        (TiffTags.RATIONAL, (6, 1), True),
        (TiffTags.SIGNED_RATIONAL, (12, 2), True),
        (TiffTags.LONG, 6, True),
        (TiffTags.SIGNED_SHORT, 6, True),
        (TiffTags.FLOAT, 6.5, False),
        (TiffTags.FLOAT, float("nan"), False),
        (TiffTags.RATIONAL, (6, 0), False),
        (TiffTags.BYTE, b"\6", False),
        (TiffTags.ASCII, "6", False),
        (TiffTags.UNDEFINED, b"\6", False),
    ],
)
def test_an_orientation_of_another_type_is_pillow_s_or_is_told(kind, value, read):
    packed = {
        TiffTags.FLOAT: lambda: struct.pack("<f", value),
        TiffTags.DOUBLE: lambda: struct.pack("<d", value),
        TiffTags.RATIONAL: lambda: struct.pack("<2I", *value),
        TiffTags.SIGNED_RATIONAL: lambda: struct.pack("<2i", *value),
        TiffTags.LONG: lambda: struct.pack("<I", value),
        TiffTags.SIGNED_SHORT: lambda: struct.pack("<h", value),
        TiffTags.ASCII: lambda: value.encode() + b"\0",
    }.get(kind, lambda: value)()
    stored = packed.ljust(4, b"\0") if len(packed) <= 4 else struct.pack("<I", 26)
    count = len(packed) if kind == TiffTags.ASCII else 1
    data = (
        b"Exif\0\0II*\0" + struct.pack("<IHHHI4sI", 8, 1, 0x0112, kind, count, stored, 0) + packed * (len(packed) > 4)
    )
    content = encoded(two_tone(), "PNG", exif=data)
    image, expected = open_image(content, "x.png"), ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))
    assert (image.size == two_tone().size) is not read
    assert remarks(image) == (() if read else ("EXIF that does not read, taken as stored",))


def test_orientation_is_pillow_s_for_every_value():
    for orientation in range(10):
        content = encoded(two_tone(), "PNG", exif=exif(orientation))
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        image = open_image(content, "x.png")
        np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))
        assert remarks(image) == ()


def test_profiles_are_ignored():
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    image = open_image(encoded(two_tone(), "PNG", icc_profile=profile), "x")
    np.testing.assert_array_equal(np.asarray(image), np.asarray(two_tone()))


def test_hidden_colours_do_not_decide():
    red, blue = (open_image(encoded(Image.new("RGBA", (64, 64), (*c, 0)), "PNG"), "x") for c in (RED, (0, 0, 255)))
    recipe = Preprocessing("shortest", (32, 32), (32, 32), "bicubic", (0.5,) * 3, (0.5,) * 3)
    assert (recipe(red) == 255).all()
    assert (recipe(blue) == 255).all()
    assert (replace(recipe, background=(1, 2, 3))(red) == (1, 2, 3)).all()
    assert (replace(recipe, background=None)(red) == RED).all()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("size", "found"), [((11_586, 11_586), "11586 x 11586"), ((20_000, 20_000), "400000000"), ((2**31 - 1, 1), r"\d+")]
)
def test_too_many_pixels_are_told_with_the_limit_and_what_to_do(size, found):
    """Those that PIL refuses itself, before their size is known, among them."""
    with pytest.raises(UnreadableImage) as caught:
        open_image(png(size, 8, 2, [b""]), "huge.png")
    assert re.fullmatch(rf"huge\.png: {found} pixels, expected at most 134,217,728; shrink it", str(caught.value))


@pytest.mark.parametrize(
    ("target", "said"), [("loop.png", "cannot be opened (Too many levels"), ("gone.png", "is a symb")]
)
def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path, target, said):
    (tmp_path / "loop.png").symlink_to(target)
    with pytest.raises(UnreadableImage, match=re.escape(said)):
        open_image(tmp_path / "loop.png", "loop.png")

import io
import warnings

import numpy as np
import pytest
from PIL import Image

from headsmith.models.images import UnreadableImage, open_image

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
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 90 degrees clockwise to see it upright
    image = open_image(encoded(two_tone(), "PNG", exif=exif), "x.png")
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


def test_palette_with_transparency_keeps_its_colours():
    image = open_image(encoded(two_tone("P"), "PNG", transparency=b"\x00\xff"), "x.png")
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
        pytest.param(b"", "not an image format", id="empty"),
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

"""Every mode and container: its pixels become the ones that its specification says, or it is refused by name."""

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from image_rows import ROWS
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.models.image_to_rgb import to_rgb
from headsmith.models.images import UnreadableImage, flatten, open_image, remarks

PAGE = Path(__file__).parents[2] / "docs" / "images.md"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.container}: {row.pixels}")
def test_pixels(row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(row.expected, str):
            with pytest.raises(UnreadableImage, match=f"^photo: .*{row.expected}"):
                open_image(row.content, "photo")
            return
        image = open_image(row.content, "photo")
    found = np.asarray(flatten(image, (255, 255, 255))).reshape(-1, 3)[: len(row.expected)]
    np.testing.assert_allclose(found.astype(int), row.expected, atol=row.tolerance, rtol=0)
    assert remarks(image) == row.remarks
    assert image.mode == ("RGBA" if "transparency" in row.remarks else "RGB")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"P5 1 2 1000 " + struct.pack(">2H", 1000, 1001), "a sample of 1001, expected at most 1000"),
        (b"P6 1 1 300 " + struct.pack(">3H", 1, 301, 2), "a sample of 301, expected at most 300"),
        (b"P2 2 1 15 5 16", "value too large for this mode: 16"),
        (b"P3 1 1 100 1 2 101", "value too large for this mode: 101"),
        (b"P5 1025 1024 15 " + bytes(1025 * 1024 - 1) + b"\x10", "a sample of 16"),
    ],
)
def test_samples_above_the_largest_value_of_a_netpbm_file(content, told):
    with pytest.raises(UnreadableImage, match=f"^photo: .*{told}"):
        open_image(content, "photo")


def test_what_follows_the_samples_of_a_netpbm_file_is_no_sample():
    found = open_image(b"P5 1 1 15 \x0f" + b"\xff" * 9, "photo")
    assert found.getpixel((0, 0)) == (255, 255, 255)


def test_the_page_has_these_rows_and_no_others():
    table = PAGE.read_text(encoding="utf-8").partition("| container |")[2].partition("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    said = {(container, pixels): done for container, pixels, done in lines[2:]}
    assert list(said) == [(row.container, row.pixels) for row in ROWS]
    refused = [isinstance(row.expected, str) for row in ROWS]
    assert [done.startswith("refused") for done in said.values()] == refused


@pytest.mark.parametrize("mode", Image.MODES)
def test_every_mode_of_pil_becomes_rgb_or_is_refused_by_name(mode):
    image = Image.new(mode, (2, 2))
    if mode in ("F", "I"):
        with pytest.raises(InputError, match=f"mode {mode}: .* whose range the file does not say"):
            to_rgb(image, image, [])
        return
    found, _ = to_rgb(image, image, [])
    assert found.mode == ("RGBA" if mode in ("LA", "La", "PA", "RGBA", "RGBa") else "RGB")


def test_hsv_is_converted_as_pillow_says():
    found, said = to_rgb(Image.new("HSV", (1, 1), (85, 255, 255)), Image.new("HSV", (1, 1)), [])
    assert (found.getpixel((0, 0)), said) == ((0, 255, 0), ["HSV pixels, converted"])


def test_every_alpha_and_colour_is_composited_as_stated():
    alpha, level = np.meshgrid(np.arange(256), np.arange(256))
    image = Image.fromarray(np.stack([level, level, level, alpha], -1).astype(np.uint8))
    for background in (0, 100, 255):
        exact = np.floor((alpha * level + (255 - alpha) * background) / 255 + 0.5)
        np.testing.assert_array_equal(np.asarray(flatten(image, (background,) * 3))[..., 1], exact)
    np.testing.assert_array_equal(np.asarray(flatten(image, None))[..., 1], level)  # as old recipes have it

"""Files that were cut are unreadable, in every container; what follows a file's end is of no matter."""

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from image_files import saved, tiff
from PIL import Image

from headsmith.models import truncated_images
from headsmith.models.images import UnreadableImage, open_image

LEVELS = np.random.default_rng(0).integers(0, 256, (40, 56, 3)).astype(np.uint8)
PICTURE = Image.fromarray(LEVELS)
NEXT = {"save_all": True, "append_images": [PICTURE.rotate(180)]}
FILES = {
    "PNG": saved(PICTURE, "PNG"),
    "PNG, stored": saved(PICTURE, "PNG", compress_level=0),
    "PNG, palette": saved(PICTURE.convert("P"), "PNG"),
    "PNG, animation": saved(PICTURE, "PNG", **NEXT),
    "JPEG": saved(PICTURE, "JPEG"),
    "JPEG, progressive": saved(PICTURE, "JPEG", progressive=True),
    "JPEG, restarts": saved(PICTURE, "JPEG", restart_marker_blocks=2),
    "GIF": saved(PICTURE, "GIF"),
    "GIF, animation": saved(PICTURE, "GIF", **NEXT),
    "WebP": saved(PICTURE, "WEBP"),
    "WebP, animation": saved(PICTURE, "WEBP", **NEXT),
    "TIFF": saved(PICTURE, "TIFF"),
    "TIFF, LZW": saved(PICTURE, "TIFF", compression="tiff_lzw"),
    "TIFF, JPEG": saved(PICTURE, "TIFF", compression="jpeg"),
    "BMP": saved(PICTURE, "BMP"),
    "ICO of PNG": saved(PICTURE, "ICO", sizes=[(32, 32)]),
    "ICO of BMP": saved(PICTURE, "ICO", sizes=[(32, 32)], bitmap_format="bmp"),
    "AVIF": saved(PICTURE, "AVIF"),
    "PPM": saved(PICTURE, "PPM"),
    "JPEG 2000": saved(PICTURE, "JPEG2000"),
}
ENDED = [name for name in FILES if name.startswith(("PNG", "GIF", "JPEG")) and name != "JPEG 2000"]


def cuts(content):
    return {
        *(len(content) - last for last in (1, 2, 3, 4, 8, 12, 13, 16, 20, 21)),
        *(len(content) * n // 10 for n in (1, 3, 5, 8, 9)),
    }


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_unreadable(name):
    content = FILES[name]
    assert open_image(content, name).mode == "RGB"
    taken = []
    for length in cuts(content):
        try:
            open_image(content[:length], name)
        except UnreadableImage as error:
            assert len(str(error).splitlines()) == 1
        else:
            taken.append(len(content) - length)
    assert not taken


@pytest.mark.parametrize("name", [*ENDED, "ICO of PNG"])
def test_a_file_whose_rest_is_zeros_is_unreadable(name):
    """A download that was broken off in a file of full size. Decoders fill what is missing, and say nothing."""
    content = FILES[name]
    for length in (len(content) * n // 10 for n in (3, 5, 8)):
        with pytest.raises(UnreadableImage):
            open_image(content[:length].ljust(4 * len(content), b"\0"), name)


@pytest.mark.parametrize("name", ENDED)
def test_what_follows_the_end_is_of_no_matter(name):
    """Cameras and messengers append their own data, a film among them."""
    rest = np.random.default_rng(1).bytes(200_000)
    expected = np.asarray(open_image(FILES[name], name))
    np.testing.assert_array_equal(open_image(FILES[name] + rest, name), expected)


def test_the_first_of_several_images_has_to_be_whole():
    """An MPO is JPEG files one after the other (CIPA DC-007): the second one may be cut, as it is not taken."""
    content = saved(PICTURE, "MPO", **NEXT)
    second = content.index(b"\xff\xd9") + 2
    assert content[second : second + 2] == b"\xff\xd8"
    expected = np.asarray(open_image(content, "both"))
    np.testing.assert_array_equal(open_image(content[: second + 100], "second cut"), expected)
    for lost in (2, 50, 400):
        with pytest.raises(UnreadableImage):
            open_image(content[: second - lost].ljust(second, b"\0") + content[second:], "first cut")


def test_a_file_on_disk_is_judged_like_its_bytes(tmp_path):
    for name in ENDED:
        path = tmp_path / "image"
        path.write_bytes(FILES[name])
        np.testing.assert_array_equal(open_image(path, name), open_image(FILES[name], name))
        path.write_bytes(FILES[name][:-1])
        with pytest.raises(UnreadableImage):
            open_image(path, name)


def test_a_thumbnail_is_not_taken_for_the_end():
    """EXIF holds a JPEG of its own, with an EOI."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + FILES["JPEG"]
    content = saved(PICTURE, "JPEG", exif=exif)
    assert content.index(b"\xff\xd9") < len(exif) + 100
    assert Image.open(io.BytesIO(content)).size == open_image(content, "whole").size
    with pytest.raises(UnreadableImage):
        open_image(content[: len(exif) + 2000].ljust(9 * len(content), b"\0"), "cut")


def test_no_file_takes_for_ever(monkeypatch):
    """Data blocks of one byte, segments of none, and icons of many entries."""
    monkeypatch.setattr(truncated_images, "_MOST_BLOCKS", 1000)
    with pytest.raises(UnreadableImage, match="more than 1,000 blocks, expected the end of the GIF"):
        open_image(FILES["GIF"][:-1] + b"!\xfe" + b"\1x" * 2000 + b"\0;", "blocks")
    start = FILES["JPEG, progressive"].rindex(b"\xff\xda")
    content = FILES["JPEG, progressive"]
    with pytest.raises(UnreadableImage, match="more than 1,000 segments, expected the end of the JPEG"):
        open_image(content[:start] + b"\xff\xfe\0\2" * 2000 + content[start:], "segments")


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("depth", "kind"), [(1, 0), (2, 3), (8, 0), (16, 4), (8, 2), (16, 6)])
def test_a_png_without_all_its_rows_is_unreadable(depth, kind, interlaced):
    """A whole file with all checksums right, of a whole zlib stream that has too few bytes (PNG, sections 7.2, 8.2)."""
    width, height, channels = 13, 9, {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    passes = [(8, 8, 0, 0), (8, 8, 4, 0), (4, 8, 0, 4), (4, 4, 2, 0), (2, 4, 0, 2), (2, 2, 1, 0), (1, 2, 0, 1)]
    rows = b""
    for across, down, left, top in passes if interlaced else [(1, 1, 0, 0)]:
        length = (len(range(left, width, across)) * depth * channels + 7) // 8
        rows += b"".join(b"\0" + b"\xaa" * length for _ in range(top, height, down))
    for zeros in (rows, bytes(len(rows))):
        whole = png_of(zeros, (width, height), depth, kind, interlaced)
        assert open_image(whole, "whole").size == (width, height)
        icon = struct.pack("<HHHBBBBHHII", 0, 1, 1, width, height, 0, 0, 1, 32, 0, 22)
        for lost in (1, length + 1, len(rows) // 2):
            cut = png_of(zeros[:-lost], (width, height), depth, kind, interlaced)
            for content in (cut, icon[:14] + struct.pack("<II", len(cut), 22) + cut):
                with pytest.raises(UnreadableImage, match="cut before its end|truncated"):
                    open_image(content, "cut")


def png_of(data, size, depth, kind, interlaced):
    header = struct.pack(">IIBBBBB", *size, depth, kind, 0, 0, interlaced)
    palette = [(b"PLTE", bytes(range(12)))] * (kind == 3)
    parts = [(b"IHDR", header), *palette, (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )


def test_a_jpeg_2000_of_far_more_pixels_than_bytes_is_not_decoded():
    """Its decoder takes 20 bytes for each pixel that the header says (ITU-T T.800, A.5.1), before it finds none."""
    content = bytearray(saved(PICTURE, "JPEG2000", no_jp2=True))
    assert content[2:4] == b"\xff\x51"
    content[8:32] = struct.pack(">6I", 8000, 8000, 0, 0, 8000, 8000)
    with pytest.raises(UnreadableImage, match="8000 x 8000 pixels in .* bytes, more than 1000 a byte"):
        open_image(bytes(content), "large")
    content = bytearray(saved(PICTURE, "JPEG2000"))
    place = content.index(b"ihdr") + 4
    content[place : place + 8] = struct.pack(">II", 80, 56)
    with pytest.raises(UnreadableImage, match=r"\(56, 40\) pixels, but \(56, 80\) in its header"):
        open_image(bytes(content), "two sizes")


@pytest.mark.parametrize("compression", [6, 34712, 34887, 50001])
def test_a_tiff_of_another_compression_is_refused_before_its_decoder_speaks(compression, capfd):
    """Old JPEG, JPEG 2000, LERC and WebP."""
    content = tiff((1, 1), [8] * 3, 2, b"\1\2\3", t259=[compression])
    with pytest.raises(UnreadableImage, match=f"compression {compression}.*; convert it to PNG"):
        open_image(content, "photo")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("compression", ["tiff_lzw", "jpeg", "tiff_deflate", "lzma", "packbits"])
def test_what_libtiff_says_of_a_damaged_file_stays_off_the_terminal(compression, capfd):
    """It writes to the descriptor by itself; Pillow raises the reason."""
    whole, refused = saved(PICTURE, "TIFF", compression=compression), 0
    for place in range(8, len(whole), max(1, len(whole) // 60)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        for content in (bytes(damaged), whole[:place]):
            try:
                open_image(content, "photo")
            except UnreadableImage as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 20
    assert capfd.readouterr().err == ""


def test_libtiff_would_speak(capfd):
    """In a process of its own, without our switch, as Pillow does it."""
    damaged = bytearray(saved(PICTURE, "TIFF", compression="tiff_deflate"))
    damaged[12] ^= 0xFF
    code = f"import io; from PIL import Image; Image.open(io.BytesIO({bytes(damaged)!r})).load()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "ZIPDecode" in found.stderr

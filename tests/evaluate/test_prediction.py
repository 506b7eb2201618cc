"""Labels for any image file."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.evaluate import predict
from headsmith.export import export_classifier


def picture(size=(60, 44), seed=0):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def test_scores_are_the_softmax_of_the_file(tiny_bundle, tmp_path):
    picture().save(tmp_path / "a.png")
    (found,) = predict(tiny_bundle.path, [tmp_path / "a.png"], k=6)
    pixels = tiny_bundle.preprocessing(picture())
    logits = tiny_bundle.open().run(pixels[None]).logits[0]
    expected = torch.from_numpy(logits).softmax(0).numpy()
    np.testing.assert_allclose(found.scores, np.sort(expected)[::-1], rtol=1e-5)
    assert found.labels == tuple(tiny_bundle.class_names[index] for index in np.argsort(-expected))
    assert sum(found.scores) == pytest.approx(1)
    assert found.path == str(tmp_path / "a.png")


def test_five_by_default_fewer_on_request_all_at_most(tiny_bundle, tmp_path):
    picture().save(tmp_path / "a.png")
    sizes = [len(predict(tiny_bundle, [tmp_path / "a.png"], **asked)[0].labels) for asked in ({}, {"k": 2}, {"k": 50})]
    assert sizes == [5, 2, 6]


def test_many_images_keep_their_order(tiny_bundle, tmp_path):
    paths = []
    for seed in range(35):
        paths.append(tmp_path / f"{seed}.png")
        picture((40 + seed, 50), seed).save(paths[-1])
    together = predict(tiny_bundle, paths)
    assert [prediction.path for prediction in together] == [str(path) for path in paths]
    for prediction, path in list(zip(together, paths, strict=True))[::11]:
        (alone,) = predict(tiny_bundle, [path])
        assert alone.labels == prediction.labels
        np.testing.assert_allclose(alone.scores, prediction.scores, atol=1e-5)


MOVING = {"save_all": True, "append_images": [picture(seed=1)]}


def upright(path):
    """The same picture stored turned, with the EXIF tag that turns it back (6: turn by 90 degrees clockwise)."""
    exif = Image.Exif()
    exif[0x0112] = 6
    picture().rotate(90, expand=True).save(path, exif=exif)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rotated.png", upright),
        ("transparent.png", lambda path: picture().convert("RGBA").save(path)),
        ("picture.bmp", lambda path: picture().save(path)),
        (
            "animated.webp",
            lambda path: picture().save(path, save_all=True, append_images=[picture(seed=1)], lossless=True),
        ),
    ],
)
def test_the_same_picture_in_another_file_gets_the_same_answer(tiny_bundle, tmp_path, name, write):
    picture().save(tmp_path / "plain.png")
    write(tmp_path / name)
    plain, other = predict(tiny_bundle, [tmp_path / "plain.png", tmp_path / name])
    assert other.labels == plain.labels
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("grey.png", lambda path: picture().convert("L").save(path)),
        ("deep.png", lambda path: Image.fromarray((np.arange(2500, dtype=np.uint16) * 26).reshape(50, 50)).save(path)),
        ("palette.png", lambda path: picture().quantize(16).save(path)),
        ("print.jpg", lambda path: picture().convert("CMYK").save(path)),
        ("moving.gif", lambda path: picture().save(path, **MOVING)),
        ("bits.png", lambda path: picture().convert("1").save(path)),
    ],
)
def test_odd_images_are_read(tiny_bundle, tmp_path, name, write):
    write(tmp_path / name)
    (found,) = predict(tiny_bundle, [tmp_path / name])
    assert len(found.labels) == 5
    assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_image_is_said_and_the_rest_goes_on(tiny_bundle, tmp_path, content):
    (tmp_path / "text.jpg").write_bytes(content)
    picture().save(tmp_path / "a.png")
    files = [tmp_path / "text.jpg", tmp_path / "a.png", tmp_path / "gone.jpg", tmp_path / "a.png"]
    bad, good, gone, again = predict(tiny_bundle, files)
    assert bad.error.startswith("not a readable image")
    assert bad.labels == bad.scores == ()
    assert gone.error == "no such file"
    assert good.error is None
    assert len(good.labels) == 5
    assert again == good


def test_a_folder_means_its_images(tiny_bundle, tmp_path):
    (tmp_path / "photos" / "deeper").mkdir(parents=True)
    for name in ("b.png", "deeper/a.png"):
        picture().save(tmp_path / "photos" / name)
    (tmp_path / "photos" / "notes.txt").write_text("none")
    found = predict(tiny_bundle, [tmp_path / "photos"])
    assert [Path(one.path).relative_to(tmp_path / "photos").as_posix() for one in found] == ["deeper/a.png", "b.png"]
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="none: a folder without an image in it"):
        predict(tiny_bundle, [tmp_path / "none"])


def test_k_below_1(tiny_bundle):
    with pytest.raises(InputError, match="k: 0 found, expected at least 1"):
        predict(tiny_bundle, [], k=0)


def test_a_head_alone_takes_no_images(tiny_run, tmp_path):
    bundle = export_classifier(tiny_run, out=tmp_path / "head", head_only=True)
    with pytest.raises(InputError, match="takes features, not images; export it without `head_only`"):
        predict(bundle, [tmp_path / "a.png"])


def test_what_was_done_with_transparency_and_odd_modes_is_told(tiny_bundle, tmp_path):
    picture().save(tmp_path / "plain.png")
    picture().convert("CMYK").save(tmp_path / "inks.jpg")
    for name in ("see.png", "through.png"):
        image = picture().convert("RGBA")
        image.putalpha(100)
        image.save(tmp_path / name)
    found = {Path(one.path).name: one.remarks for one in predict(tiny_bundle, [tmp_path])}
    composited = ("transparency, composited on (255, 255, 255)",)
    expected = {"plain.png": (), "inks.jpg": ("CMYK pixels, converted",)}
    assert found == expected | {"see.png": composited, "through.png": composited}
    done = CliRunner().invoke(app, ["predict", str(tiny_bundle.path), str(tmp_path)])
    assert "2 images with transparency, composited on (255, 255, 255)\n" in done.output
    assert "1 image with CMYK pixels, converted\n" in done.output

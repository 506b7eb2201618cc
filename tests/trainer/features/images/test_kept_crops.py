"""One decode of an image serves all backbones that resize alike."""

import dataclasses
import errno
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from headsmith.models.preprocessing import Preprocessing
from headsmith.trainer import extract
from headsmith.trainer.features.images.image_set import ImageSet, open_images
from headsmith.trainer.features.images.kept_crops import CropFolder

RECIPE = Preprocessing("shortest", (12, 12), (8, 8), "bilinear", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


IDS = "abcde"


def kept_crops(folder, images="images", count=5, recipe=RECIPE):
    contents = {one: f"{images} {one}" for one in IDS[:count]}
    return CropFolder(folder, contents).of(recipe)


def crop(number):
    return np.full((1, 8, 8, 3), number, np.uint8), f"{number:064d}", ("grey",)


def test_a_crop_is_read_as_it_was_put_by_whoever_put_it(tmp_path):
    one, other = (kept_crops(tmp_path) for _ in range(2))
    assert one.get("d") is None
    one.put("d", crop(7))
    pixels, picture, remarks = other.get("d")
    assert (pixels == 7).all() and pixels.shape == (1, 8, 8, 3)
    assert (picture, remarks) == crop(7)[1:]
    assert other.get("c") is other.get("e") is None
    one.put("f", crop(1))  # of no image of the set
    assert one.get("f") is None


def test_a_record_that_was_not_written_to_its_end_is_none(tmp_path):
    kept = kept_crops(tmp_path)
    kept.put("a", crop(1))
    with kept.path.open("r+b") as file:
        file.seek(600)
        file.write(b"\xff")
    assert kept.get("a") is None


def test_other_means_share_a_file_and_another_resize_or_other_images_do_not(tmp_path):
    paths = [
        kept_crops(tmp_path, images, recipe=recipe).path
        for images, recipe in (
            ("images", RECIPE),
            ("images", dataclasses.replace(RECIPE, mean=(0.0, 0.0, 0.0), channel_order="bgr")),
            ("images", dataclasses.replace(RECIPE, interpolation="bicubic")),
            ("images", dataclasses.replace(RECIPE, background=None)),
            ("others", RECIPE),
        )
    ]
    assert paths[0] == paths[1] and len(set(paths)) == 4


def test_a_full_disk_ends_the_keeping_alone(tmp_path, monkeypatch):
    kept = kept_crops(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    kept.put("a", crop(1))
    assert kept.get("a") is None
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 4 * 5 * 8 * 8 * 3))
    assert kept_crops(tmp_path) is None  # no room from the start


@pytest.mark.parametrize("mode", ["RGB", "LA"])
def test_the_second_backbone_decodes_nothing_and_features_are_the_same(
    tiny_backbone, image_folder, tmp_path, monkeypatch, mode
):
    folder = image_folder({"cat": 10, "dog": 10})
    for path in sorted(folder.rglob("*.png"))[:4]:
        Image.open(path).convert(mode).save(path)
    images = open_images(folder).hashed()
    images = dataclasses.replace(images, crops=CropFolder(tmp_path / "crops", images.known))
    read, original = [], ImageSet.read
    monkeypatch.setattr(ImageSet, "read", lambda *args: read.append(args[1]) or original(*args))
    given = tiny_backbone._asdict()
    plain = extract(folder, out=tmp_path / "plain", **given)
    read.clear()
    found = [
        extract(images, out=tmp_path / name, dtype=dtype, **given)
        for name, dtype in (("a", "float16"), ("b", "float32"))
    ]
    assert sorted(read) == list(range(20))
    for one in found:
        for split in plain.splits:
            assert one.ids(split) == plain.ids(split)
            np.testing.assert_array_equal(one.arrays(split)[0].half(), plain.arrays(split)[0])
        assert one.manifest.pictures_sha256 == plain.manifest.pictures_sha256
        assert one.manifest.remarks == plain.manifest.remarks

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
from headsmith.trainer.features.extraction import shards
from headsmith.trainer.features.images.image_set import ImageSet, open_images, reopen
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


def test_an_extraction_that_begins_at_the_end_gives_the_same_features(
    tiny_backbone, image_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(shards, "SHARD_ROWS", 4)
    images = open_images(image_folder({"cat": 10, "dog": 10})).hashed()
    order, read = [], ImageSet.read
    monkeypatch.setattr(ImageSet, "read", lambda *args: order.append(args[1]) or read(*args))
    found = {}
    for backwards in (False, True):
        own = dataclasses.replace(images, crops=CropFolder(tmp_path / f"{backwards}", images.known, backwards))
        found[backwards] = extract(own, out=tmp_path / f"features-{backwards}", workers=1, **tiny_backbone._asdict())
    assert order[:4] == [0, 1, 2, 3] and order[20:22] == [18, 19]
    assert found[True].fingerprint == found[False].fingerprint
    np.testing.assert_array_equal(*(one.arrays("train")[0] for one in found.values()))


def test_crops_are_shared_with_the_same_bytes_alone(image_folder, tmp_path):
    folder = image_folder({"cat": 10, "dog": 10})
    crops = CropFolder(tmp_path, open_images(folder).hashed().known)
    assert crops.shared_with(open_images(folder).split("test")).crops is crops
    Image.new("RGB", (9, 9)).save(folder / open_images(folder).split("test").samples[0].id)
    assert crops.shared_with(open_images(folder).split("test")).crops is None
    assert crops.shared_with(open_images(folder).split("val")).crops is crops


def test_images_that_are_open_are_divided_as_a_record_of_them_says(image_folder):
    folder = image_folder({"cat": 10, "dog": 10})
    images = open_images(folder)
    moved = images.moved({images.split("test").samples[0].id: "train"})
    again = images.divided_as(moved.source)
    assert images.divided_as(images.source) is images
    assert again.samples == moved.samples == reopen(moved.source).samples
    assert images.divided_as(open_images(image_folder({"cat": 10, "dog": 10})).source) is None
    assert images.divided_as(open_images(folder, splits=False).source) is None


def test_a_part_of_hashed_images_reads_no_file_for_its_fingerprint(image_folder):
    folder = image_folder({"cat": 10, "dog": 10})
    expected, images = open_images(folder).split("test").fingerprint, open_images(folder).hashed()
    for path in folder.rglob("*.png"):
        path.unlink()
    assert images.split("test").fingerprint == expected

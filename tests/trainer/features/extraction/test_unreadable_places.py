"""Unreadable images leave no gap where splits are carved: their places go to the next readable ones of the class."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from headsmith.trainer.features import extract, open_images
from headsmith.trainer.features.images.carving import rank
from headsmith.trainer.features.images.image_set import reopen


@pytest.fixture
def small(tmp_path):
    """A function: a folder with so many random pictures a class."""

    def make(**counts):
        random = np.random.default_rng(0)
        for name, count in counts.items():
            for number in range(count):
                path = tmp_path / "photos" / name / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(random.integers(0, 256, (24, 24, 3)).astype(np.uint8)).save(path)
        return tmp_path / "photos"

    return make


def run(folder, tiny_backbone, name="set", **options):
    out = folder.parent / name
    return extract(folder, out=out, device="cpu", batch_size=7, **tiny_backbone._asdict(), **options)


def places(images):
    return {sample.id: sample.split for sample in images.samples}


def spoil(folder, names):
    for name in names:
        (folder / name).write_bytes((folder / name).read_bytes()[:-30])


def counts(features):
    return {split: Counter(name.partition("/")[0] for name in set(features.ids(split))) for split in features.splits}


@pytest.mark.parametrize("views", [{}, {"crops": 5, "flip": True}])
def test_a_small_class_keeps_its_held_out_pictures(small, tiny_backbone, views):
    folder = small(ant=6, bee=40)
    before = places(open_images(folder))
    held_out = sorted(name for name, split in before.items() if split != "train" and name.startswith("ant"))
    spoil(folder, held_out)
    found = run(folder, tiny_backbone, **views)
    # The four that can be read are divided as if there were no others: by rank, test first.
    order = sorted((name for name in before if name.startswith("ant") and name not in held_out), key=rank)
    assert [name for name in found.ids("test") if name.startswith("ant")] == order[:1]
    assert [name for name in found.ids("val") if name.startswith("ant")] == order[1:2]
    assert counts(found) == {"train": {"ant": 2, "bee": 32}, "val": {"ant": 1, "bee": 4}, "test": {"ant": 1, "bee": 4}}
    assert "places of unreadable images filled out of train" in found.manifest.split_rule
    told = "\n".join(map(str, found.manifest.warnings))
    for split, name in zip(("test", "val"), order, strict=False):
        assert f"{split}: 1 training images took the places of unreadable ones ({name})" in told
    # The record opens the same division, and the command finds its result.
    again = reopen(found.manifest.source)
    for split in found.splits:
        readable = {sample.id for sample in again.split(split).samples} - set(held_out)
        assert readable == set(found.ids(split))
    assert run(folder, tiny_backbone, **views).manifest == found.manifest


def test_no_more_are_held_out_than_a_tenth_of_what_can_be_read(small, tiny_backbone):
    folder = small(ant=30, bee=30)
    before = places(open_images(folder))
    spoil(folder, [name for name, split in before.items() if name.startswith("ant") and split == "train"][:14])
    spoil(folder, [name for name, split in before.items() if name.startswith("ant") and split == "val"])
    found = run(folder, tiny_backbone)
    readable = 30 - 14 - 3
    assert counts(found)["val"]["ant"] == max(1, round(0.1 * readable)) == 1
    assert counts(found)["test"]["ant"] == 3  # what was held out stays so
    assert counts(found)["train"]["ant"] == readable - 4


def test_copies_go_together(small, tiny_backbone):
    folder = small(ant=7, bee=12)
    for path in (folder / "ant").glob("*.png"):
        with Image.open(path) as image:
            image.save(path.with_suffix(".bmp"))
    before = places(open_images(folder))
    spoil(folder, [name for name, split in before.items() if split == "val" and name.startswith("ant")])
    found = run(folder, tiny_backbone)
    own = [name.partition(".")[0] for name in found.ids("val") if name.startswith("ant")]
    assert len(own) == 2
    assert len(set(own)) == 1
    assert found.manifest.copies.across == {}


def test_a_class_with_too_few_readable_ones_is_told(small, tiny_backbone):
    folder = small(ant=3, bee=12)
    before = places(open_images(folder))
    spoil(folder, [name for name, split in before.items() if split == "val" and name.startswith("ant")])
    found = run(folder, tiny_backbone)
    assert counts(found)["val"] == {"bee": 1}
    assert any("val has no image of class 'ant'" in line.message for line in found.manifest.warnings)
    assert "filled" not in found.manifest.split_rule


def test_the_sources_own_splits_stay(small, tiny_backbone, tmp_path):
    folder = small(**{"train/ant": 6, "train/bee": 6, "val/ant": 1, "val/bee": 2, "test/ant": 1, "test/bee": 2})
    spoil(folder, ["val/ant/0.png"])
    found = run(folder, tiny_backbone)
    assert found.manifest.splits == {"train": 12, "val": 2, "test": 3}

"""Copies of pictures: told within and across splits and classes, and kept in one split where splits are carved."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from headsmith.core.errors import InputError
from headsmith.trainer import train
from headsmith.trainer.features import FeatureSet, extract, inspect_features, open_images
from headsmith.trainer.features.images import carving
from headsmith.trainer.features.images.image_set import reopen
from headsmith.trainer.features.images.picture_identity import picture_hash
from headsmith.trainer.features.images.samples import ImageSource

SUFFIXES = {"bytes": "png", "format": "bmp", "metadata": "png"}


def draw(number, size=24):
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, (size, size, 3)).astype(np.uint8))


def copy_of(path, kind):
    """A copy of a picture beside it: of its bytes, in another lossless format, or with other metadata."""
    copy = path.with_name(f"copy_{path.stem}.{SUFFIXES[kind]}")
    if kind == "bytes":
        shutil.copyfile(path, copy)
        return
    note = PngInfo()
    note.add_text("Author", path.stem)
    with Image.open(path) as image:
        image.save(copy, **({"pnginfo": note} if kind == "metadata" else {}))


@pytest.fixture
def doubled(tmp_path):
    """A function: sixty random pictures of three classes, each with a copy of a kind."""

    def make(kind, copies=True):
        for number in range(60):
            path = tmp_path / "photos" / "abc"[number % 3] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(number).save(path)
            if copies:
                copy_of(path, kind)
        return tmp_path / "photos"

    return make


def run(images, out, tiny_backbone, **options):
    return extract(images, out=out, device="cpu", batch_size=7, **tiny_backbone._asdict(), **options)


def splits_of(features):
    return {name: split for split in features.splits for name in features.ids(split)}


def picture(name):
    return name.replace("copy_", "").rpartition(".")[0]


@pytest.mark.parametrize("kind", SUFFIXES)
def test_copies_stay_in_one_split_where_it_is_carved(doubled, tiny_backbone, tmp_path, kind):
    folder = doubled(kind)
    found = run(folder, tmp_path / "set", tiny_backbone)
    places = splits_of(found)
    assert len(places) == 120
    assert len({(picture(name), place) for name, place in places.items()}) == 60
    assert "copies of a picture in one split" in found.manifest.split_rule
    assert found.manifest.copies.across == {}
    within = {split: rows.images for split, rows in found.manifest.copies.within.items()}
    assert within == {split: count // 2 for split, count in found.manifest.splits.items()}
    assert not inspect_features(found).leaked_rows
    # What was divided so is found again, by the record, and wherever the images are.
    again = reopen(found.manifest.source)
    assert {sample.id: sample.split for sample in again.samples} == places
    for split in found.splits:
        assert [sample.id for sample in again.split(split).samples] == found.ids(split)
    written = json.loads((found.path / "manifest.json").read_text())["source"]
    assert written.keys() == {"source", "together"} and written["source"] == str(folder)
    assert written["together"].items() <= places.items()
    assert run(folder, tmp_path / "set", tiny_backbone).manifest == found.manifest


def test_a_division_without_copies_is_what_it_was(doubled, tiny_backbone, tmp_path):
    """A tenth of each class by the rank of a hash, as in every version; so bundles keep their held-out part."""
    folder = doubled("bytes", copies=False)
    images = open_images(folder)
    expected = {}
    for label, name in enumerate(images.class_names):
        group = sorted((s for s in images.samples if s.label == label), key=lambda one: carving.rank(one.id))
        expected |= {s.id: split for s, split in zip(group, ["test"] * 2 + ["val"] * 2, strict=False)}
        assert name == "abc"[label]
    assert {s.id: s.split for s in images.samples if s.split != "train"} == expected
    assert images.source == ImageSource(str(folder))
    assert images.split_rule.endswith("by rank of sha256('0:' + id)")


def test_an_old_division_is_kept_by_its_record(doubled):
    """Older versions did not look for copies: what their records name opens as they divided it."""
    folder = doubled("bytes")
    old = reopen(ImageSource(str(folder)))
    places = {s.id: s.split for s in old.samples}
    torn = sum(places[name] != places[name.replace("copy_", "")] for name in places if "copy_" in name)
    assert torn > 0
    assert "copies" not in old.split_rule
    new = {s.id: s.split for s in open_images(folder).samples}
    assert not sum(new[name] != new[name.replace("copy_", "")] for name in new if "copy_" in name)


def test_an_added_copy_or_image_moves_few_others(doubled):
    folder = doubled("bytes", copies=False)
    before = {s.id: s.split for s in open_images(folder).samples}
    copy_of(folder / "a" / "0.png", "bytes")
    after = {s.id: s.split for s in open_images(folder).samples}
    assert after["a/0.png"] == after.pop("a/copy_0.png")
    assert sum(before[name] != after[name] for name in before) <= 2
    draw(1000).save(folder / "b" / "new.png")
    last = {s.id: s.split for s in open_images(folder).samples}
    assert sum(after[name] != last[name] for name in after) <= 2


@pytest.fixture
def own_splits(tmp_path):
    """Twelve pictures each in val and test of one's own, of which nine lie in train too; two in another class."""
    for split, numbers in (("train", range(60)), ("val", range(51, 63)), ("test", range(3, 15))):
        for number in numbers:
            path = tmp_path / "own" / split / "abc"[number % 3] / f"{split}_{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(number + 100 * (split == "test" and number < 6)).save(path)
    shutil.copyfile(tmp_path / "own/train/a/train_0.png", tmp_path / "own/train/b/again.png")
    return tmp_path / "own"


def test_copies_across_splits_of_ones_own_are_told(own_splits, tiny_backbone, tmp_path):
    found = run(own_splits, tmp_path / "set", tiny_backbone)
    assert found.manifest.splits == {"train": 61, "val": 12, "test": 12}
    told = list(map(str, found.manifest.warnings))
    first = "(val/a/val_51.png = train/a/train_51.png"
    assert told[0].startswith(f"leak: val: 9 of 12 images are copies of images of an earlier split {first}")
    assert told[1].startswith("leak: test: 9 of 12 images are copies")
    assert [line[:19] for line in told[2:-1]] == ["copies: train: 1 of"]
    classes = "(train/a/train_0.png in 'a' and train/b/again.png in 'b')"
    assert told[-1].startswith(f"conflicts: 1 picture is in more than one class {classes}")
    said = inspect_features(found)
    assert {split: rows.count for split, rows in said.leaked_rows.items()} == {"val": 9, "test": 9}
    assert said.splits["train"].duplicates.count == 1
    assert any(one.code == "conflicts" for one in said.warnings)
    warnings = train(found, out=tmp_path / "run", epochs=1, device="cpu").record.warnings
    (told,) = [warning.message for warning in warnings if warning.code == "leak"]
    assert told.startswith("9 of 12 val and 9 of 12 test images are copies of images of an earlier split")
    assert "1 picture is in more than one class" in told


def test_a_copy_beside_a_test_split_of_ones_own_is_told(tmp_path, tiny_backbone):
    """val is carved, test is the user's: copies stay together in the first and are told in the second."""
    for number in range(30):
        path = tmp_path / "photos/train" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(number).save(path)
        copy_of(path, "format")
    for number in (0, 1, 90, 91):
        path = tmp_path / "photos/test" / "ab"[number % 2] / f"t{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(number).save(path)
    found = run(tmp_path / "photos", tmp_path / "set", tiny_backbone)
    assert found.manifest.splits["test"] == 4
    assert {split: entry.images for split, entry in found.manifest.copies.across.items()} == {"test": 2}
    assert not Counter(map(picture, found.ids("val"))).keys() & Counter(map(picture, found.ids("train"))).keys()


def test_views_of_an_image_that_moves(doubled, tiny_backbone, tmp_path):
    """A held-out image has the one view that is deployed, also where it was first taken for a training image."""
    found = run(doubled("format"), tmp_path / "set", tiny_backbone, flip=True)
    assert len(found.ids("val")) == len(set(found.ids("val")))
    assert Counter(Counter(found.ids("train")).values()).keys() == {2}
    plain = run(tmp_path / "photos", tmp_path / "plain", tiny_backbone)
    for split in ("val", "test"):
        assert found.ids(split) == plain.ids(split)
        np.testing.assert_allclose(found.arrays(split)[0], plain.arrays(split)[0], atol=2e-3, rtol=1e-2)


@pytest.fixture
def twelve(tmp_path):
    """Six different pictures of one class, and another class of six files that show two."""
    for number in range(6):
        for name in "ab":
            path = tmp_path / "photos" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(number if name == "a" else 7 + (number == 0)).save(path)
    return tmp_path / "photos"


def test_a_class_of_copies_stays_in_train(twelve, tiny_backbone, tmp_path):
    found = run(twelve, tmp_path / "set", tiny_backbone)
    places = splits_of(found)
    assert {name: place for name, place in places.items() if name[0] == "b"} == {
        f"b/{n}.png": "train" for n in range(6)
    }
    assert Counter(places.values()) == {"train": 10, "val": 1, "test": 1}
    assert [one.message for one in found.manifest.warnings if one.code == "missing-class"] == [
        f"{split} has no image of class 'b': too few different ones, or unreadable" for split in ("val", "test")
    ]


@pytest.mark.parametrize(
    ("classes", "differ", "rows", "told"),
    [
        ("b", False, (10, 1, 1), set()),
        ("b", True, (10, 1, 1), set()),
        ("ab", False, (8, 2, 2), {"val", "test"}),
        ("ab", True, (8, 2, 2), {"val", "test"}),
    ],
)
def test_where_copies_cannot_be_kept_together_they_are_told(
    twelve, tiny_backbone, tmp_path, classes, differ, rows, told
):
    """A class of one picture, in files that differ or not, and a set of nothing else."""
    for name in classes:
        for number in range(6):
            note = PngInfo()
            note.add_text("Author", str(number))
            draw(ord(name)).save(twelve / name / f"{number}.png", **({"pnginfo": note} if differ else {}))
    found = run(twelve, tmp_path / "set", tiny_backbone)
    assert tuple(found.manifest.splits.values()) == rows
    assert found.manifest.copies.across.keys() == told
    for split in told:  # each class has one picture, so all that is held out of it was seen in training
        assert found.manifest.copies.across[split].classes == [("a", 1), ("b", 1)]
        (line,) = [
            one.message
            for one in found.manifest.warnings
            if one.message.startswith(f"{split}: 2 of 2 images are copies")
        ]
        assert ", among them all of 'a' (1), 'b' (1), so accuracies may be too high" in line
    assert {s.id: s.split for s in reopen(found.manifest.source).samples} == splits_of(found)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("different", [2, 3, 4])
def test_a_class_of_few_pictures_in_files_that_differ(doubled, tiny_backbone, tmp_path, different, flip):
    """As where the files are equal: three pictures or more are divided, fewer stay in train; none is torn."""
    folder = doubled("bytes", copies=False)
    shutil.rmtree(folder / "c")
    (folder / "c").mkdir()
    for number in range(40):
        note = PngInfo()
        note.add_text("Author", str(number))
        draw(100 + number % different).save(folder / "c" / f"{number}.png", pnginfo=note)
    found = run(folder, tmp_path / "set", tiny_backbone, flip=flip)
    places = splits_of(found)
    shown = {(int(name[2:-4]) % different, split) for name, split in places.items() if name[0] == "c"}
    assert len(places) == 80
    assert Counter(split for _, split in shown) == (
        {"train": 2} if different == 2 else {"train": different - 2, "val": 1, "test": 1}
    )
    assert found.manifest.copies.across == {}
    assert {s.id: s.split for s in reopen(found.manifest.source).samples} == places


def test_a_picture_in_two_classes_is_not_held_out(doubled):
    folder = doubled("bytes", copies=False)
    for number in range(0, 60, 3):
        shutil.copyfile(folder / "a" / f"{number}.png", folder / "b" / f"{number}_too.png")
    images = open_images(folder)
    held_out = [sample.id for sample in images.samples if sample.split != "train"]
    assert not [name for name in held_out if name.startswith("a/") or "too" in name]
    assert Counter(name[0] for name in held_out) == {"b": 4, "c": 4}


def test_what_a_picture_is():
    image = draw(0)
    assert picture_hash(image) == picture_hash(image.copy())
    changed = np.asarray(image).copy()
    changed[3, 5, 2] ^= 1
    flat = Image.fromarray(np.asarray(image).reshape(12, 48, 3))
    assert len({picture_hash(one) for one in (image, Image.fromarray(changed), flat)}) == 3


def test_hashes_of_pictures_that_were_changed_or_taken_away_are_refused(doubled, tiny_backbone, tmp_path):
    found = run(doubled("bytes"), tmp_path / "set", tiny_backbone)
    manifest = json.loads((found.path / "manifest.json").read_text())
    hashes = manifest["pictures_sha256"]
    lacking = {split: one for split, one in hashes.items() if split != "val"}
    for split, changed in (("val", hashes | {"val": "0" * 64}), ("val", lacking), ("train", {}), ("train", None)):
        told = manifest | {"pictures_sha256": changed}
        if changed is None:
            del told["pictures_sha256"]
        (found.path / "manifest.json").write_text(json.dumps(told))
        with pytest.raises(InputError, match=f"{split}: the hashes of the pictures are not those that were written"):
            FeatureSet.load(found.path)


@pytest.mark.parametrize(("held", "named"), [({"a": 2}, [("a", 2)]), ({"a": 1}, [("a", 1)]), ({"b": 2, "a": 2}, None)])
def test_a_class_whose_held_out_pictures_were_all_seen_is_named(tmp_path, tiny_backbone, held, named):
    """Its accuracy says nothing. Of the last one a picture is new in each class, so that none is named."""
    root = tmp_path / "divided"
    for number, (split, name) in enumerate((split, name) for split in ("train", "val", "test") for name in "ab"):
        (root / split / name).mkdir(parents=True)
        for place in range(4 if split == "train" else 2):
            draw(10 * number + place).save(root / split / name / f"{place}.png")
    for name, count in held.items():
        shutil.rmtree(root / "test" / name)
        (root / "test" / name).mkdir()
        for place in range(count):
            shutil.copyfile(root / "train" / name / f"{place}.png", root / "test" / name / f"seen{place}.png")
        if named is None:
            draw(1000 + ord(name)).save(root / "test" / name / "new.png")
    found = run(root, tmp_path / "set", tiny_backbone)
    assert found.manifest.copies.across["test"].classes == (named or [])
    inspected = inspect_features(found.path)
    assert inspected.leaked_classes == {"test": dict(named or [])}
    head = train(found, out=tmp_path / "run", epochs=1, device="cpu")
    warnings = [*found.manifest.warnings, *inspected.problems, *head.record.warnings]
    whole = [one.message for one in warnings if ", among them all of " in one.message]
    if named is None:
        assert whole == []
    else:
        assert len(whole) == 3 and all(f"among them all of 'a' ({named[0][1]})" in text for text in whole)

import errno
import logging
import os
import shutil
import socket
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.datasets import ImageFolder

from headsmith.core.errors import InputError
from headsmith.trainer.features import image_batches, open_images
from headsmith.trainer.features.images.carving import carve
from headsmith.trainer.features.images.folder_source import images_under
from headsmith.trainer.features.images.image_set import reopen
from headsmith.trainer.features.images.labels import Labels, index_labels
from headsmith.trainer.features.images.samples import Sample


def splits(images):
    return Counter(sample.split for sample in images.samples)


def test_order_and_labels_are_torchvisions(image_folder):
    folder = image_folder({str(number): 3 for number in range(12)})
    images = open_images(folder, splits=False)
    reference = ImageFolder(folder)
    assert images.class_names == reference.classes
    assert images.class_names.index("2") == 4  # as text: 0, 1, 10, 11, 2
    assert [(str(folder / s.id), s.label) for s in images.samples] == reference.samples
    assert splits(images) == {"test": 36}


def test_missing_splits_are_carved_by_class_and_stay_the_same(image_folder):
    folder = image_folder({"cat": 20, "dog": 3, "owl": 34})
    images, again = open_images(folder), open_images(folder)
    counts = Counter((images.class_names[s.label], s.split) for s in images.samples)
    assert counts == {
        ("cat", "train"): 16, ("cat", "val"): 2, ("cat", "test"): 2,
        ("dog", "train"): 1, ("dog", "val"): 1, ("dog", "test"): 1,
        ("owl", "train"): 28, ("owl", "val"): 3, ("owl", "test"): 3,
    }  # fmt: skip
    assert images.samples == again.samples
    assert images.fingerprint == again.fingerprint
    assert "carved from train" in images.split_rule
    assert reopen(images.source).samples == images.samples


@settings(deadline=None)
@given(counts=st.lists(st.integers(3, 40), min_size=2, max_size=6), missing=st.sets(st.sampled_from(["val", "test"])))
def test_carving_keeps_every_sample_once_and_gives_each_split_of_each_class_one(counts, missing):
    missing = sorted(missing, reverse=True)
    samples = [Sample(f"{c}/{i}", c, "train") for c, count in enumerate(counts) for i in range(count)]
    carved = carve(samples, [str(c) for c in range(len(counts))], missing)
    assert sorted(s.id for s in carved) == sorted(s.id for s in samples)
    for label, count in enumerate(counts):
        found = Counter(s.split for s in carved if s.label == label)
        assert set(found) == {"train", *missing}
        assert all(found[split] == max(1, round(count / 10)) for split in missing)


def test_own_splits_are_kept(image_folder):
    layout = {"train": {"cat": 4, "dog": 5}, "validation": {"cat": 1, "dog": 1}, "test": {"dog": 2}}
    images = open_images(image_folder(layout))
    assert splits(images) == {"train": 9, "val": 2, "test": 2}
    assert [s.id for s in images.split("test").samples] == ["test/dog/000.png", "test/dog/001.png"]
    assert images.split_rule == "the source's own train, val and test"


def test_only_the_missing_split_is_carved(image_folder):
    images = open_images(image_folder({"train": {"cat": 20, "dog": 20}, "test": {"cat": 5, "dog": 5}}))
    assert splits(images) == {"train": 36, "val": 4, "test": 10}


def test_held_out_images_of_a_divided_folder_are_its_test_split(image_folder):
    folder = image_folder({"train": {"cat": 4, "dog": 5}, "test": {"dog": 2}})
    assert splits(open_images(folder, splits=False)) == {"test": 2}
    with pytest.raises(InputError, match=r"divided into \['train'\] and has no test split"):
        shutil.rmtree(folder / "test")
        open_images(folder, splits=False)


def test_a_class_may_be_called_train(image_folder):
    assert open_images(image_folder({"bus": 4, "train": 4})).class_names == ["bus", "train"]


def test_hidden_nested_upper_case_linked_and_unicode(image_folder, tmp_path, caplog):
    folder = image_folder({"cat": 3, "dog": 3})
    (folder / ".cache").mkdir()
    (folder / "cat" / "._000.png").write_bytes(b"resource fork")
    (folder / "cat" / "notes.txt").write_text("three cats")
    (folder / "metadata.csv").write_text("class,photographer\ncat,Ann\n")
    (folder / "cat" / "000.png").rename(folder / "cat" / "000.PNG")
    (folder / "dog" / "deep").mkdir()
    shutil.copy(folder / "dog" / "000.png", folder / "dog" / "deep" / "ü.png")
    (folder / "dog" / "loop").symlink_to(folder / "dog")
    (folder / unicodedata.normalize("NFD", "zoë")).symlink_to(image_folder({"x": 3}) / "x")
    with caplog.at_level(logging.WARNING):
        images = open_images(folder)
    assert images.class_names == ["cat", "dog", unicodedata.normalize("NFC", "zoë")]
    assert Counter(s.label for s in images.samples) == {0: 3, 1: 4, 2: 3}
    assert {"cat/000.PNG", "dog/deep/ü.png"} <= {s.id for s in images.samples}
    assert "1 .txt" in caplog.text
    assert all(images.read(row).mode == "RGB" for row in range(len(images)))


LINKS = {
    "to the parent": {"ant/up": ".."},
    "to what is above": {"ant/up": "../../.."},
    "to another class": {"bee/other": "../ant"},
    "into another class": {"ant/other": "../cat/deep"},
    "to each other": {"ant/next": "../bee", "bee/next": "../ant"},
    "into the same class": {"cat/again": "deep"},
    "to one folder twice": {"ant/more": "../../pool", "bee/more": "../../pool"},
    "to a folder and into it": {"ant/more": "../../pool/inner", "bee/more": "../../pool"},
    "round and round": {"ant/self": ".", "ant/down": "up", "ant/up": "../ant"},
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_no_picture_is_listed_twice_by_links(image_folder, tmp_path, caplog, links):
    folder = image_folder({"ant": 4, "bee": 4, "cat": 4})
    for target in (folder / "cat" / "deep", folder.parent / "pool" / "inner", folder.parent / "pool"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "cat" / "000.png", target / f"{target.name}.png")
    for name, target in links.items():
        (folder / name).symlink_to(target)
    with caplog.at_level(logging.WARNING):
        images = open_images(folder)
    places = [(folder / sample.id).resolve() for sample in images.samples]
    assert len(places) == len(set(places))
    own = set(folder.rglob("*.png"))  # which follows no links
    assert own <= set(places)
    pool = set((folder.parent / "pool").rglob("*.png")) if "pool" in str(links) else set()
    assert set(places) - own == pool
    (line,) = caplog.messages
    assert "not followed, as they lead to folders that are listed already: " in line


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("dog", "cat", "dog: is the same folder as .*cat by a link; remove the link"),
        ("dog", "cat/deep", "dog: lies inside .*cat by a link; remove the link"),
        ("self", ".", "lies inside .*self by a link; remove the link"),
    ],
)
def test_a_class_that_is_another_one_by_a_link_is_refused(image_folder, name, target, message):
    folder = image_folder({"ant": 4, "cat": 4})
    (folder / "cat" / "deep").mkdir()
    shutil.copy(folder / "cat" / "000.png", folder / "cat" / "deep" / "000.png")
    (folder / name).symlink_to(target)
    with pytest.raises(InputError, match=message):
        open_images(folder)


def test_a_split_that_is_another_one_by_a_link_is_refused(image_folder):
    folder = image_folder({"train/ant": 4, "train/cat": 4, "val/ant": 2, "val/cat": 2})
    (folder / "test").symlink_to("val")
    with pytest.raises(InputError, match="test/ant: is the same folder as .*val/ant by a link"):
        open_images(folder)


def test_a_folder_of_images_is_not_left_by_a_link_to_its_parent(image_folder, caplog):
    folder = image_folder({"ant": 3, "bee": 3})
    (folder / "ant" / "up").symlink_to("..")
    with caplog.at_level(logging.WARNING):
        assert [path.parent.name for path in images_under(folder / "ant")] == ["ant"] * 3
    assert "listed already: up" in caplog.text


def test_fingerprint_follows_content_not_place_or_time(image_folder, tmp_path):
    folder = image_folder({"cat": 4, "dog": 4})
    before = open_images(folder).fingerprint
    shutil.copytree(folder, tmp_path / "copy")
    assert open_images(tmp_path / "copy").fingerprint == before
    image = tmp_path / "copy" / "cat" / "000.png"
    stat, content = image.stat(), image.read_bytes()
    image.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    os.utime(image, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert image.stat().st_size == stat.st_size
    assert open_images(tmp_path / "copy").fingerprint != before
    image.write_bytes(content)
    (tmp_path / "copy" / "cat").rename(tmp_path / "copy" / "kat")
    assert open_images(tmp_path / "copy").fingerprint != before


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({}, "no class folders; expected one folder of images for each class"),
        ({"cat": 0, "dog": 3}, r"cat: class folder without an image \(holds no file\).*remove the folder"),
        ({"cat": 9}, r"one class only \(cat\), expected at least 2"),
        ({"cat": 2, "dog": 9}, r"too few images .*'cat' \(2\), expected at least 3 each; add images, or divide"),
        ({"train": {"cat": 4, "dog": 4}, "test": {"cow": 1}}, "test has classes that train has no image of: cow"),
        ({"train": {"cat": 4, "dog": 4}, "val": {"emu": 1, "fox": 1}}, "val has classes .* of: emu, fox"),
        ({"test": {"cat": 4, "dog": 4}}, r"has no train split, found \['test'\]"),
        ({"train": {"a": 4, "b": 4}, "val": {"a": 1}, "valid": {"a": 1}}, "'val' and 'valid' both mean val"),
        ({"train": {"a": 4, "b": 4}, "cow": 3}, r"holds train beside folders of images \(cow\)"),
        ({"train": 4, "test": 4}, "train: has images, but no class folders"),
    ],
)
def test_what_cannot_be_used_is_refused(image_folder, layout, message):
    folder = image_folder(layout)
    with pytest.raises(InputError, match=message) as caught:
        open_images(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_flat_folders_are_refused(image_folder):
    folder = image_folder({"train": {"cat": 4, "dog": 4}})
    with pytest.raises(InputError, match="cat: has images, but no class folders; expected one folder"):
        open_images(folder / "train" / "cat")
    with pytest.raises(InputError, match="cat: has images, but no class folders"):
        open_images(folder / "train" / "cat", splits=False)
    shutil.copy(folder / "train" / "cat" / "000.png", folder / "train" / "stray.png")
    with pytest.raises(InputError, match=r"images outside of the class folders \(stray.png\)"):
        open_images(folder)


def test_missing_and_odd_paths_are_refused(tmp_path, image_folder):
    with pytest.raises(InputError, match="nothing: no such folder"):
        open_images(tmp_path / "nothing")
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(InputError, match=r"file.txt: is a file, expected a folder of class folders"):
        open_images(tmp_path / "file.txt")
    folder = image_folder({"cat": 3, "dog": 3})
    (folder / "dog" / "000.png").rename(folder / "dog" / os.fsdecode(b"\xff.png"))
    with pytest.raises(InputError, match="the name is not UTF-8; rename it"):
        open_images(folder)
    (folder / "cat" / "photo.heic").write_bytes(b"")
    for image in (folder / "cat").glob("*.png"):
        image.unlink()
    with pytest.raises(InputError, match=r"without an image \(holds only .heic files\)"):
        open_images(folder)


def test_two_unicode_forms_of_one_class_are_refused(image_folder):
    folder = image_folder({unicodedata.normalize(form, "café"): 3 for form in ("NFC", "NFD")})
    with pytest.raises(InputError, match="different Unicode forms; merge them"):
        open_images(folder)


@pytest.mark.parametrize("name", ["two\nlines", "two\u2028lines"])
def test_a_class_that_is_not_one_line_is_refused(image_folder, name):
    folder = image_folder({name: 3, "dog": 3})
    with pytest.raises(InputError, match="class name .* found, expected text on one line; rename that class") as caught:
        open_images(folder)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [("two\nlines", "expected text on one line"), ("", "'' in row 0, expected a whole number or text")],
)
def test_a_label_that_is_not_one_line_is_refused(name, said):
    values = np.array([name, "dog"], object)
    with pytest.raises(InputError, match=said):
        index_labels([Labels("labels.npy: label", values)])
    with pytest.raises(InputError, match="expected text on one line"):
        index_labels([Labels("labels.npy: label", np.array([0, 1]), [name, "dog"])])


def test_what_is_no_file_is_skipped_and_never_waited_for(image_folder, caplog):
    """Named pipes, sockets, devices, links in circles and to nowhere, rubbish of macOS: nothing hangs, all is said."""
    folder = image_folder({"cat": 4, "dog": 4})
    os.mkfifo(folder / "cat" / "pipe.png")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "cat" / "socket.jpg"))
        (folder / "dog" / "endless.png").symlink_to("/dev/zero")
        (folder / "dog" / "lost.png").symlink_to(folder / "nothing.png")
        (folder / "dog" / "a.png").symlink_to(folder / "dog" / "b.png")
        (folder / "dog" / "b.png").symlink_to(folder / "dog" / "a.png")
        (folder / "dog" / "round").symlink_to(folder / "dog")
        (folder / "cat" / "000.png").rename(folder / "cat" / "two\nlines\x1b[31m.png")
        for name in ("__MACOSX/cat/000.png", "cat/._001.png", "cat/.DS_Store", "dog/__MACOSX/x.png"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"")
        images = open_images(folder)
        assert {s.id for s in images.samples} == {
            "cat/two\nlines\x1b[31m.png",
            *(f"cat/00{number}.png" for number in (1, 2, 3)),
            *(f"dog/00{number}.png" for number in range(4)),
            *(f"dog/{name}.png" for name in ("lost", "a", "b")),
        }
        assert len(images.fingerprint) == 64
    assert "skipped files that are not images by their suffix or kind: 3 special, 1 hidden .png" in caplog.text
    unreadable = {}
    for _ in image_batches(images, lambda image: np.asarray(image), 4, on_unreadable=unreadable.__setitem__):
        pass
    assert set(unreadable) == {"dog/lost.png", "dog/a.png", "dog/b.png"}


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_source_that_is_no_folder(tmp_path, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / "images")
    path = tmp_path / "images" if kind == "pipe" else "/dev/zero"
    with pytest.raises(InputError, match="is a file, expected a folder of class folders"):
        open_images(path)


def test_a_folder_that_may_not_be_listed_is_named(image_folder, monkeypatch):
    """Root may list any folder, so the system's answer is the test's."""
    folder = image_folder({"cat": 4, "dog": 4})
    listing = os.scandir
    (folder / "dog" / "more").mkdir()

    def refuse(path):
        if str(path).endswith("more"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"dog/more: cannot be listed \(Permission denied\)"):
        open_images(folder)


def test_hidden_images_are_skipped_with_a_count(tmp_path, caplog):
    for name in ("cat/0.png", "cat/.hidden.png", "cat/._mac.png", "cat/.notes"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in images_under(tmp_path)] == ["0.png"]
    assert caplog.text.rstrip().endswith("by their suffix or kind: 2 hidden .png")


@pytest.mark.parametrize("name", ["a.zip", "train.tar.gz", "b.7z"])
def test_archives_in_place_of_images_are_told(tmp_path, name):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / name).write_bytes(b"PK")
    with pytest.raises(
        InputError, match=f"only archives \\({name}\\), which are not opened; unpack them; expected one"
    ):
        open_images(tmp_path / "all")
    for label in ("cat", "dog"):
        (tmp_path / "each" / label).mkdir(parents=True)
        (tmp_path / "each" / label / name).write_bytes(b"PK")
    with pytest.raises(InputError, match="cat: class folder .*; archives are not opened, unpack them there"):
        open_images(tmp_path / "each")

"""Held-out sets whose right classes stand in files: the devkit's numbers, CSV files, ReaL, numbered folders, groups."""

import json
import os
import shutil

import datasets
import numpy as np
import pytest
import scipy.io
from sklearn.metrics import top_k_accuracy_score
from timm.data.imagenet_info import ImageNetInfo

from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, open_held_out
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.truth_file import class_names_of
from headsmith.trainer import FeatureSet

SYNSETS = ImageNetInfo("imagenet-1k").label_names()


@pytest.fixture
def flat(image_folder, tmp_path):
    """Six images in one folder: val_0.png is a cat, val_1.png a dog, and so on to val_5.png."""
    images, folder = image_folder({"cat": 2, "dog": 2, "emu": 2}), tmp_path / "flat"
    folder.mkdir()
    for number, (place, name) in enumerate((place, name) for place in (0, 1) for name in ("cat", "dog", "emu")):
        shutil.copy(images / name / f"00{place}.png", folder / f"val_{number}.png")
    return folder


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def open_data(data, **given):
    return open_held_out.open_data(HeldOutSource(str(data), **{name: str(value) for name, value in given.items()}))


def labels_of(data):
    return [data.class_names[sample.label] for sample in data.images.samples]


WANTED = ["cat", "dog", "emu"] * 2
LINES = "1\n3\n2\n1\n3\n2\n"


def test_the_devkits_numbers_are_no_places(flat, tmp_path):
    truth = write(tmp_path / "truth.txt", LINES)
    ids = write(tmp_path / "map.txt", "1 cat\n2 emu\n3 dog\n")
    data = open_data(flat, truth=truth, class_ids=str(ids))
    assert labels_of(data) == WANTED
    assert data.class_names == ["cat", "dog", "emu"]


def test_the_devkits_own_map(flat, tmp_path):
    entries = np.array([(1, "cat"), (2, "emu"), (3, "dog")], dtype=[("ILSVRC2012_ID", object), ("WNID", object)])
    scipy.io.savemat(tmp_path / "meta.mat", {"synsets": entries})
    truth = write(tmp_path / "truth.txt", LINES)
    assert labels_of(open_data(flat, truth=truth, class_ids=str(tmp_path / "meta.mat"))) == WANTED


def test_numbers_without_a_map_are_refused(flat, tmp_path):
    with pytest.raises(InputError, match=r"numbers 1\.\.3; one-based\?; say what they stand for with `class_ids`"):
        open_data(flat, truth=write(tmp_path / "truth.txt", LINES))


@pytest.mark.parametrize("lines", [LINES + "1\n", LINES.removesuffix("2\n")])
def test_more_or_fewer_labels_than_images(flat, tmp_path, lines):
    count = lines.count("\n")
    with pytest.raises(
        InputError, match=f"truth.txt: {count} labels for the 6 images in .*flat; expected one an image"
    ):
        open_data(flat, truth=write(tmp_path / "truth.txt", lines))


@pytest.mark.parametrize("heading", ["", "file_name,class\n"])
def test_a_csv_file_names_its_images(flat, tmp_path, heading):
    rows = "".join(f"val_{number}.png,{name}\n" for number, name in reversed(list(enumerate(WANTED))))
    data = open_data(flat, truth=write(tmp_path / "truth.csv", heading + rows))
    assert labels_of(data) == WANTED
    assert tuple(one.message for one in data.warnings) == ()


def test_a_csv_file_that_does_not_fit_is_said(flat, tmp_path):
    rows = "".join(f"val_{number}.png,{name}\n" for number, name in enumerate(WANTED[:5]))
    data = open_data(flat, truth=write(tmp_path / "truth.csv", rows + "gone.png,cat\n"))
    assert len(data) == 5
    assert tuple(one.message for one in data.warnings) == (
        "1 row of truth.csv has no image: gone.png",
        "1 image has no row in truth.csv and is left out: val_5.png",
    )
    with pytest.raises(InputError, match=r"none of its 1 files is in .*flat, such as gone\.png"):
        open_data(flat, truth=write(tmp_path / "other.csv", "gone.png,cat\n"))


def test_an_image_that_a_csv_file_names_twice(flat, tmp_path):
    rows = "".join(f"val_{number}.png,{name}\n" for number, name in enumerate(WANTED))
    data = open_data(flat, truth=write(tmp_path / "truth.csv", rows + "val_1,dog\n"))
    assert labels_of(data) == WANTED
    assert tuple(one.message for one in data.warnings) == ("1 row of truth.csv repeats an earlier one and counts once",)
    with pytest.raises(InputError, match=r"other\.csv: val_1\.png is dog in one row and emu in another"):
        open_data(flat, truth=write(tmp_path / "other.csv", rows + "val_1.png,emu\n"))


@pytest.mark.parametrize(
    ("row", "files", "fits"),
    [
        ("one", ("one.png", "one.jpg"), None),
        ("one", ("one.png", "one.PNG"), None),
        ("one", ("one.png", "sub/one.png"), None),
        ("one.png", ("a/one.png", "b/one.png"), None),
        ("one.png", ("one.png", "one.jpg"), "one.png"),
        ("one.png", ("one.png", "sub/one.png"), "one.png"),
        ("sub/one.png", ("one.png", "sub/one.png"), "sub/one.png"),
        ("one.png", ("sub/one.png", "sub/one.png.jpg"), "sub/one.png"),
    ],
)
def test_a_name_that_fits_two_images_is_refused(flat, tmp_path, row, files, fits):
    for file in files:
        (flat / file).parent.mkdir(exist_ok=True)
        shutil.copy(flat / "val_0.png", flat / file)
    truth = write(tmp_path / "truth.csv", f"val_1.png,dog\n{row},cat\n")
    if fits is not None:
        assert fits in [sample.id for sample in open_data(flat, truth=truth).images.samples]
        return
    listed = ", ".join(sorted(files))
    with pytest.raises(
        InputError, match=rf"truth\.csv: {row} found, which matches 2 images in .*flat \({listed}\); write "
    ):
        open_data(flat, truth=truth)


def test_boxes_behind_a_class_are_left_out(flat, tmp_path):
    rows = "".join(f"val_{number},{SYNSETS[number]} 1 2 30 40\n" for number in range(6))
    data = open_data(flat, truth=write(tmp_path / "truth.csv", "ImageId,PredictionString\n" + rows))
    assert labels_of(data) == SYNSETS[:6]


def test_a_flat_folder_alone_is_no_class(flat):
    with pytest.raises(InputError, match="has images, but no class folders"):
        open_data(flat)


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        ("gone.csv", "not found"),
        ("empty.csv", "no rows found"),
        ("heading.csv", "a header only"),
        ("ragged.csv", "line 3: 3 columns, expected 2 as in line 1"),
        ("open.csv", "line 3: cannot be read as a row"),
        ("break.csv", r"line 3: class name 'do.*ng' found, expected text on one line"),
        ("either.csv", "commas or semicolons could separate its columns"),
        ("odd.json", "expected a JSON list"),
        ("object.json", r"expected a JSON list .*entry 0 is \{'a': 1\}"),
        ("text.json", "expected a JSON list .*entry 1 is 'dog'"),
        ("float.json", r"expected a JSON list .*entry 0 is \[0.5\]"),
        ("hole.txt", "line 2: empty, expected the class of an image"),
        ("latin.txt", "latin.txt: line 2: byte 0xe9 is not UTF-8"),
        ("pipe.csv", "is a named pipe, expected a regular file"),
        ("flat", "is a folder, expected a regular file"),
    ],
)
def test_truth_that_is_none(flat, tmp_path, truth, said):
    files = {
        "empty.csv": "",
        "heading.csv": "file,class\n",
        "ragged.csv": "val_0,cat\n\nval_1,dog,emu\n",
        "open.csv": 'val_0,cat\nval_1,"dog\nval_2,emu\n',
        "break.csv": 'val_0,cat\nval_1,"do\nng"\n',
        "either.csv": "val_0,cat;Felis\nval_1,dog;Canis\n",
        "odd.json": '{"a": 1',
        "object.json": '{"a": 1}',
        "text.json": '[[0], "dog"]',
        "float.json": "[[0.5]]",
        "hole.txt": "cat\n\ndog\n",
    }
    for name, text in files.items():
        write(tmp_path / name, text)
    (tmp_path / "latin.txt").write_bytes(b"cat\nd\xe9g\n")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=said) as error:
        open_data(flat, truth=tmp_path / truth)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("heading", [True, False])
def test_tables_as_excel_writes_them(flat, tmp_path, separator, heading):
    """A mark at the begin, CRLF, semicolons or tabs, blank lines at the end; a first row of stems is no heading."""
    rows = [("file", "class")] * heading + [(f"val_{number}", name) for number, name in enumerate(WANTED)]
    text = "\ufeff" + "\r\n".join(separator.join(row) for row in rows) + "\r\n\r\n"
    (tmp_path / "truth.csv").write_bytes(text.encode())
    data = open_data(flat, truth=tmp_path / "truth.csv")
    assert labels_of(data) == WANTED
    assert tuple(one.message for one in data.warnings) == ()


def test_lists_as_windows_saves_them(flat, tmp_path):
    (tmp_path / "truth.txt").write_bytes("\ufeff".encode() + LINES.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    (tmp_path / "map.txt").write_bytes("\ufeff1 cat\r\n2 emu\r\n3 dog\r\n\r\n".encode())
    (tmp_path / "real.json").write_bytes("\ufeff[[0], [1], [2], [0], [1], [2]]\r\n".encode())
    (tmp_path / "names.txt").write_bytes("\ufeffcat\r\ndog\r\nemu\r\n".encode())
    lines = open_data(flat, truth=tmp_path / "truth.txt", class_ids=str(tmp_path / "map.txt"))
    lists = open_data(flat, truth=tmp_path / "real.json", class_ids=str(tmp_path / "names.txt"))
    assert labels_of(lines) == labels_of(lists) == WANTED


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("twice.txt", b"1 cat\n2 emu\n1 dog\n", "line 3: '1 dog' has its id twice"),
        ("odd.txt", b"1 cat\n2 emu\ndog\n", "line 3: 'dog' is no `id name`"),
        ("meta.mat", b"MATLAB 5.0 MAT-file" + b"\xff" * 200, "truncated, damaged or not the devkit's"),
        ("empty.mat", b"", "truncated, damaged or not the devkit's"),
    ],
)
def test_class_ids_that_are_none(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: .*{said}"):
        class_names_of(str(tmp_path / name))


def test_a_devkit_file_that_was_cut_or_changed(tmp_path):
    entries = np.array([(1, "cat"), (2, "emu"), (3, "dog")], dtype=[("ILSVRC2012_ID", object), ("WNID", object)])
    scipy.io.savemat(tmp_path / "meta.mat", {"synsets": entries}, do_compression=True)
    whole = (tmp_path / "meta.mat").read_bytes()
    for size in range(0, len(whole) - 1, 7):
        (tmp_path / "meta.mat").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"meta\.mat: "):
            class_names_of(str(tmp_path / "meta.mat"))
    scipy.io.savemat(tmp_path / "meta.mat", {"other": entries})
    with pytest.raises(InputError, match="not the devkit's"):
        class_names_of(str(tmp_path / "meta.mat"))


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no image in it"):
        open_data(tmp_path / "empty", truth=write(tmp_path / "truth.csv", "a.png,cat\n"))


def test_numbered_folders_are_sorted_as_numbers(image_folder, tmp_path):
    """Case of ImageNet-V2: as text, folder 10 comes before folder 2."""
    folder = image_folder({str(number): 1 for number in range(12)})
    data = open_data(folder, class_ids="imagenet-1k")
    assert {
        sample.id.split("/")[0]: name for sample, name in zip(data.images.samples, labels_of(data), strict=True)
    } == {str(number): SYNSETS[number] for number in range(12)}
    names = write(tmp_path / "names.txt", "\n".join("abcdefghijkl"))
    assert class_names_of(str(names))["10"] == "k"
    with pytest.raises(InputError, match="class 10 is none of the 2 ids of `class_ids`"):
        open_data(folder, class_ids=str(write(tmp_path / "few.txt", "a\nb")))


def test_real_labels_are_sets(flat, tiny_bundle, tmp_path):
    """Any class of a set is right; images without one are left out."""
    names = write(tmp_path / "names.txt", "\n".join(sorted(tiny_bundle.class_names)))
    sets = [[0], [1, 2], [], [0, 5], [3], [2]]
    truth = write(tmp_path / "real.json", json.dumps(sets))
    results = evaluate_classifiers(
        tiny_bundle, data=flat, truth=truth, class_ids=str(names), out=tmp_path / "out", save_logits=True
    )
    result = results[0]
    logits = np.load(tmp_path / "out" / "models" / result.key / "logits.npz")["logits"]
    kept = [right for right in sets if right]
    assert (result.n, result.summary.mean_recall, result.classes) == (5, None, None)
    assert result.top1.value == np.mean([best in right for best, right in zip(logits.argmax(1), kept, strict=True)])
    assert [one.message for one in results.data.warnings] == ["1 image has no right class and is left out"]
    assert results.predictions(0).ids == [f"val_{number}.png" for number in (0, 1, 3, 4, 5)]


def test_groups_of_a_csv_file(flat, tiny_bundle, tmp_path):
    rows = "".join(f"val_{n}.png,{name},{'fog' if n % 2 else 'snow'}\n" for n, name in enumerate(WANTED))
    truth = write(tmp_path / "truth.csv", "file,class,weather\n" + rows)
    out = tmp_path / "out"
    results = evaluate_classifiers(
        tiny_bundle, data=flat, truth=truth, group_column="weather", out=out, save_logits=True
    )
    result = results[0]
    saved = np.load(out / "models" / result.key / "logits.npz")
    assert list(result.groups) == ["fog", "snow"]
    for group, rows in (("fog", slice(1, None, 2)), ("snow", slice(0, None, 2))):
        expected = top_k_accuracy_score(saved["labels"][rows], saved["logits"][rows], k=1, labels=range(6))
        assert result.groups[group].top[1].value == pytest.approx(expected)
    assert results.predictions(0).groups == ["snow", "fog"] * 3
    with pytest.raises(InputError, match="no `group_column` light; its columns are file, class, weather|not among"):
        open_data(flat, truth=truth, group_column="light")


def test_groups_of_a_datasets_source(flat, tmp_path):
    paths = sorted(map(str, flat.iterdir()))
    features = datasets.Features(
        image=datasets.Image(), label=datasets.ClassLabel(names=["cat", "dog", "emu"]), camera=datasets.Value("string")
    )
    table = {"image": paths, "label": [0, 1, 2] * 2, "camera": ["a", "b"] * 3}
    datasets.DatasetDict(test=datasets.Dataset.from_dict(table, features)).save_to_disk(tmp_path / "set")
    data = open_data(tmp_path / "set", label_column="label", group_column="camera")
    assert data.groups == ["a", "b"] * 3
    assert data.image(data.ids[0]).size == (40, 40)
    with pytest.raises(InputError, match="`group_column` lens not found; its columns are"):
        open_data(tmp_path / "set", label_column="label", group_column="lens")


@pytest.mark.parametrize("keyword", ["truth", "class_ids", "group_column", "image_column", "label_column"])
def test_features_hold_what_keywords_of_images_say(tmp_path, keyword):
    path, labels = tmp_path / "features", np.arange(60) % 3
    FeatureSet.from_arrays(np.random.default_rng(0).normal(size=(60, 4)), labels, out=path)
    with pytest.raises(InputError, match=rf"is a feature set, which holds its.*; leave out `{keyword}`"):
        open_data(path, **{keyword: str(write(tmp_path / "labels.txt", "a\nb\nc\n"))})


@pytest.mark.parametrize("keyword", ["image_column", "label_column"])
def test_a_file_of_labels_is_for_a_folder_without_columns(flat, tmp_path, keyword):
    truth, ids = write(tmp_path / "truth.txt", LINES), write(tmp_path / "map.txt", "1 cat\n2 emu\n3 dog\n")
    with pytest.raises(InputError, match=rf"truth\.txt: says the labels of a folder.*; leave out `{keyword}`"):
        open_data(flat, truth=truth, class_ids=str(ids), **{keyword: "x"})


def test_a_file_of_features_is_no_feature_set_yet(tmp_path):
    np.savez(tmp_path / "ok.npz", features=np.ones((4, 2)), labels=np.arange(4) % 2)
    with pytest.raises(InputError, match=r"ok\.npz: is a file, .* a feature set, which `headsmith import` makes"):
        open_data(tmp_path / "ok.npz")

import io
import json
from collections import Counter

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import open_images
from headsmith.trainer.features.images.image_set import reopen
from headsmith.trainer.features.images.samples import ImageSource

COLOURS = {"red": (250, 0, 0), "green": (0, 250, 0), "blue": (0, 0, 250)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def png(colour):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), COLOURS.get(colour, (9, 9, 9))).save(file, "png")
    return {"bytes": file.getvalue(), "path": None}


def table(labels, kind, /, **columns):
    features = {"image": datasets.Image(), "label": kind} | {name: kind for name, (kind, _) in columns.items()}
    rows = {"image": [png(name) for name in labels], "label": labels} | {
        n: values for n, (_, values) in columns.items()
    }
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


NAMED = datasets.ClassLabel(names=["green", "red", "blue"])


def test_saved_dataset_keeps_its_class_order(tmp_path):
    table(["red", "blue", "green"] * 10, NAMED).save_to_disk(tmp_path / "set")
    images = open_images(tmp_path / "set")
    assert images.class_names == ["green", "red", "blue"]
    assert Counter(s.split for s in images.samples) == {"train": 24, "val": 3, "test": 3}
    for row, sample in enumerate(images.samples):
        assert images.read(row).getpixel((0, 0)) == COLOURS[images.class_names[sample.label]]
    assert images.source == ImageSource(str(tmp_path / "set"), "image", "label")
    assert reopen(images.source).fingerprint == images.fingerprint


def test_splits_and_their_synonyms(tmp_path):
    both = table(["red", "green"] * 3, NAMED)
    saved = {"train": both, "validation": both, "test": both, "extra": both}
    datasets.DatasetDict(saved).save_to_disk(tmp_path / "set")
    images = open_images(tmp_path / "set")
    assert Counter(s.split for s in images.samples) == {"train": 6, "val": 6, "test": 6}
    assert images.samples[6].id == "val/0"
    assert {s.split for s in open_images(tmp_path / "set", splits=False).samples} == {"test"}


@pytest.mark.parametrize(
    ("labels", "kind", "names"),
    [
        ([10, 9, 1, 2] * 3, "int64", ["1", "2", "9", "10"]),
        (["b", "a", "10", "9"] * 3, "string", ["10", "9", "a", "b"]),
        ([True, False] * 3, "bool", ["False", "True"]),
        ([3, 7] * 3, "uint8", ["3", "7"]),
    ],
)
def test_labels_that_do_not_start_at_0(tmp_path, labels, kind, names):
    table(labels, datasets.Value(kind)).save_to_disk(tmp_path / "set")
    images = open_images(tmp_path / "set")
    assert images.class_names == names
    own = {f"train/{row}": str(label) for row, label in enumerate(labels)}
    assert {s.id: images.class_names[s.label] for s in images.samples} == own


def test_load_dataset_reads_a_folder_of_parquet(tmp_path):
    (tmp_path / "shop").mkdir()
    table(["red", "blue"] * 5, NAMED).to_parquet(tmp_path / "shop" / "train-00000-of-00001.parquet")
    images = open_images(tmp_path / "shop")
    assert images.class_names == ["green", "red", "blue"]
    assert len(images) == 10
    assert images.read(0).size == (8, 8)


def test_images_of_parquet_without_any_path(tmp_path):
    rows = {"image": pa.array([png("red"), png("blue")] * 5), "label": ["red", "blue"] * 5}
    assert pa.types.is_null(rows["image"].type.field("path").type)
    (tmp_path / "shop").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "shop" / "train.parquet")
    images = open_images(tmp_path / "shop")
    assert [images.read(row).getpixel((0, 0)) for row in (0, 1)] == [COLOURS["red"], COLOURS["blue"]]


def test_images_of_parquet_with_paths_alone(tmp_path):
    folder = tmp_path / "shop"
    (folder / "pictures").mkdir(parents=True)
    for colour in COLOURS:
        (folder / "pictures" / f"{colour}.png").write_bytes(png(colour)["bytes"])
    labels = ["red", "blue"] * 5
    rows = [{"bytes": None, "path": f"pictures/{colour}.png"} for colour in labels]
    pq.write_table(pa.table({"image": pa.array(rows), "label": labels}), folder / "train.parquet")
    images = open_images(folder)
    assert [images.read(row).getpixel((0, 0)) for row in (0, 1)] == [COLOURS["red"], COLOURS["blue"]]


def test_load_dataset_reads_flat_images_with_metadata(tmp_path):
    folder = tmp_path / "flat"
    folder.mkdir()
    lines = []
    for number, colour in enumerate(["red", "blue"] * 3):
        Image.new("RGB", (8, 8), COLOURS[colour]).save(folder / f"{number}.png")
        lines.append(json.dumps({"file_name": f"{number}.png", "label": colour}))
    (folder / "metadata.jsonl").write_text("\n".join(lines))
    images = open_images(folder)
    assert images.class_names == ["blue", "red"]
    for row, sample in enumerate(images.samples):
        assert images.read(row).getpixel((0, 0)) == COLOURS[images.class_names[sample.label]]


def test_class_folders_through_load_dataset_agree_with_our_own(image_folder):
    folder = image_folder({"cat": 5, "dog": 4})
    ours, theirs = open_images(folder), open_images(folder, label_column="label")
    assert ours.class_names == theirs.class_names
    assert Counter(s.label for s in ours.samples) == Counter(s.label for s in theirs.samples)


def test_damaged_and_missing_images_are_found_when_read(tmp_path):
    rows = [png("red"), {"bytes": b"no image", "path": None}, None, png("blue")] * 3
    features = datasets.Features({"image": datasets.Image(), "label": NAMED})
    data = datasets.Dataset.from_dict({"image": rows, "label": [0, 0, 1, 1] * 3}, features=features)
    data.save_to_disk(tmp_path / "set")
    images = open_images(tmp_path / "set", splits=False)
    with pytest.raises(UnreadableImage, match="train/1: not a readable image"):
        images.read(1)
    with pytest.raises(UnreadableImage, match="train/2: no image in this row"):
        images.read(2)
    assert len(images.fingerprint) == 64


@pytest.mark.parametrize(
    ("columns", "asked", "message"),
    [
        (
            {"back": (datasets.Image(), [None] * 6)},
            {},
            r"2 image columns \(image, back\), expected one; say which one with `image_column`, e.g. .* image$",
        ),
        ({"kind": (NAMED, [0] * 6)}, {}, "may be labels: label, kind; say which one with `label_column`"),
        ({}, {"label_column": "lable"}, "`label_column` lable not found; its columns are image, label"),
        ({}, {"image_column": "photo"}, "`image_column` photo not found; its columns are image, label"),
        ({}, {"image_column": "label"}, "`image_column` label holds .*ClassLabel.*, expected images"),
        (
            {"x": (datasets.Value("float32"), [0.5] * 6)},
            {"label_column": "x"},
            "x: all 6 labels are fractions, ",
        ),
    ],
)
def test_columns_that_do_not_fit(tmp_path, columns, asked, message):
    table(["red", "blue"] * 3, NAMED, **columns).save_to_disk(tmp_path / "set")
    with pytest.raises(InputError, match=message):
        open_images(tmp_path / "set", **asked)


def test_columns_are_chosen_by_name(tmp_path):
    extra = {"kind": (datasets.Value("string"), ["p", "q"] * 3)}
    table([1, 2] * 3, datasets.Value("int64"), **extra).save_to_disk(tmp_path / "set")
    assert open_images(tmp_path / "set").class_names == ["1", "2"]
    assert open_images(tmp_path / "set", label_column="kind").class_names == ["p", "q"]


def test_no_column_that_could_be_meant(tmp_path):
    datasets.Dataset.from_dict({"a": [1.5], "b": [2.5]}).save_to_disk(tmp_path / "numbers")
    with pytest.raises(InputError, match=r"no image column among a \(float64\), b \(float64\); say which one"):
        open_images(tmp_path / "numbers")
    table([0.5], datasets.Value("float32")).save_to_disk(tmp_path / "unlabelled")
    with pytest.raises(InputError, match="no column that may hold labels; say which one"):
        open_images(tmp_path / "unlabelled")


def test_rows_without_a_label(tmp_path):
    train = table(["red", "blue"] * 3, NAMED)
    test = train.remove_columns("label").add_column("label", [-1] * 6).cast_column("label", NAMED)
    datasets.DatasetDict({"train": train, "test": test}).save_to_disk(tmp_path / "set")
    with pytest.raises(InputError, match="set: test: label is -1 in row 0 \\(6 such rows of 6\\), expected 0 or more"):
        open_images(tmp_path / "set")
    table(["a", None, "b"], datasets.Value("string")).save_to_disk(tmp_path / "gap")
    with pytest.raises(
        InputError, match=r"gap: train: label is missing \(null\) in row 1, expected a whole number or text"
    ):
        open_images(tmp_path / "gap")


def test_a_test_label_that_training_never_saw(tmp_path):
    numbers = datasets.Value("int64")
    data = {"train": table([1, 2] * 3, numbers), "test": table([3], numbers)}
    datasets.DatasetDict(data).save_to_disk(tmp_path / "set")
    with pytest.raises(InputError, match="test has classes that train has no image of: 3"):
        open_images(tmp_path / "set")


def test_splits_with_other_class_names(tmp_path):
    data = {"train": table(["red", "blue"] * 3, NAMED), "test": table([1, 2], datasets.Value("int64"))}
    datasets.DatasetDict(data).save_to_disk(tmp_path / "set")
    with pytest.raises(InputError, match="test: label holds Value.*but ClassLabel.* in the first split"):
        open_images(tmp_path / "set")


def test_unknown_split_names(tmp_path):
    datasets.DatasetDict({"everything": table(["red", "blue"], NAMED)}).save_to_disk(tmp_path / "set")
    with pytest.raises(InputError, match="has splits everything, expected train, val or test among them"):
        open_images(tmp_path / "set")


def test_a_name_that_is_nowhere(monkeypatch):
    monkeypatch.setattr("headsmith.core.hub._why_unreachable", lambda endpoint: "")
    asked = []

    def load_dataset(name):
        asked.append(name)
        raise datasets.exceptions.DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(InputError, match="someone/cats: no such folder, and not a data set .*doesn't exist on the Hub"):
        open_images("someone/cats")
    assert asked == ["someone/cats"]


def test_a_mistyped_path_asks_no_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    with pytest.raises(InputError, match="photos/cats: no such folder; name a folder"):
        open_images("photos/cats")


def test_pixels_survive_the_way_through_datasets(tmp_path):
    photo = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    rows = {"image": [Image.fromarray(photo)] * 6, "label": [0, 1] * 3}
    kind = datasets.Features({"image": datasets.Image(), "label": NAMED})
    datasets.Dataset.from_dict(rows, features=kind).save_to_disk(tmp_path / "set")
    assert np.array_equal(np.asarray(open_images(tmp_path / "set").read(0)), photo)


def test_the_index_that_pandas_writes_is_no_label(tmp_path):
    pictures = [{"bytes": png(colour)["bytes"], "path": f"{colour}.png"} for colour in ("red", "blue")]
    rows = pd.DataFrame({"image": pictures * 3, "kind": ["a", "b"] * 3}, index=[3, 1, 4, 5, 9, 2])
    (tmp_path / "set").mkdir()
    rows.to_parquet(tmp_path / "set" / "test.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "set" / "test.parquet").names
    assert open_images(tmp_path / "set", splits=False).source.label_column == "kind"


@pytest.mark.parametrize(
    ("values", "said"),
    [([b"abc", b"xyz"], r"image \(binary\), label \(int64\)"), ([1.5, 2.5], r"image \((double|float64)\), label")],
)
def test_a_column_called_image_of_another_type_is_told_with_it(tmp_path, values, said):
    (tmp_path / "a").mkdir()
    datasets.Dataset.from_dict({"image": values * 30, "label": [0, 1] * 30}).to_parquet(
        tmp_path / "a" / "train.parquet"
    )
    with pytest.raises(InputError, match=f"no image column among {said}.*; say which one with `image_column`"):
        open_images(tmp_path / "a")


@pytest.mark.parametrize("other", ["label", "labels"])
def test_class_names_beside_another_column_of_labels(tmp_path, other):
    kinds = {"image": datasets.Value("binary"), "fine": datasets.ClassLabel(names=["a", "b"])}
    kinds[other] = datasets.Value("int64")
    rows = {"image": [b"x"] * 60, "fine": [0, 1] * 30, other: [1, 0] * 30}
    (tmp_path / "a").mkdir()
    datasets.Dataset.from_dict(rows, features=datasets.Features(kinds)).to_parquet(tmp_path / "a" / "train.parquet")
    with pytest.raises(InputError, match=f"class names noted for fine, and another column called {other}; say which"):
        open_images(tmp_path / "a", image_column="image")
    assert open_images(tmp_path / "a", image_column="image", label_column="fine").class_names == ["a", "b"]

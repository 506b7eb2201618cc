"""Class names that `datasets` notes in parquet and Arrow files, and notes that cannot be used."""

import json

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

NAMES = ["w", "x", "y", "z"]
LABELS = np.arange(60) % 4
ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(names=NAMES, **columns):
    found = datasets.Dataset.from_dict({"embedding": ROWS.tolist(), "label": LABELS.tolist(), **columns})
    return found.cast_column("label", datasets.ClassLabel(names=names))


def noted(note, file="f.parquet"):
    """A file of features and labels with a note, as bytes or as what JSON writes."""
    table = pa.table({"embedding": ROWS.tolist(), "label": LABELS})
    note = note if isinstance(note, bytes) else json.dumps(note).encode()
    pq.write_table(table.replace_schema_metadata({"huggingface": note}), file)
    return file


def class_label(**fields):
    return {"info": {"features": {"label": {"_type": "ClassLabel", **fields}}}}


def classes(file, **options):
    return import_features(file, out="set", **options).class_names


def test_names_of_a_parquet_file_of_datasets():
    rows().to_parquet("f.parquet")
    assert datasets.Dataset.from_parquet("f.parquet", cache_dir="cache").features["label"].names == NAMES
    made = import_features("f.parquet", out="set")
    assert made.class_names == NAMES
    for split in made.splits:
        own = [int(row.rpartition("/")[2]) for row in made.ids(split)]
        assert made.arrays(split)[1].tolist() == LABELS[own].tolist()


@pytest.mark.parametrize("write", [pyarrow.feather.write_feather, pq.write_table])
@pytest.mark.parametrize("names", [["z", "y", "x", "w"], [*NAMES, "never"]], ids=["order", "more"])
def test_names_of_the_table_of_a_data_set(write, names):
    file = "f.feather" if write is pyarrow.feather.write_feather else "f.parquet"
    write(rows(names).data.table, file)
    assert classes(file) == names


def test_names_of_columns_with_a_number_each():
    columns = {f"f{number}": ROWS[:, number].tolist() for number in range(4)}
    rows(**columns).remove_columns("embedding").to_parquet("f.parquet")
    assert classes("f.parquet") == NAMES


def test_names_of_labels_beside_an_array():
    np.save("x_0.npy", ROWS)
    rows().remove_columns("embedding").to_parquet("metadata_0.parquet")
    assert classes("x_0.npy") == NAMES


def test_names_that_are_given_are_held_against_them(tmp_path):
    rows().to_parquet("f.parquet")
    (tmp_path / "names.txt").write_text("x\nw\ny\nz\n")
    with pytest.raises(InputError, match=r"f\.parquet: label: its own names have 'w' at 0, `class_names` at 1"):
        classes("f.parquet", class_names=tmp_path / "names.txt")
    (tmp_path / "names.txt").write_text("a\nb\nc\nd\n")
    assert classes("f.parquet", class_names=tmp_path / "names.txt") == list("abcd")


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (class_label(names=["w", "x", "y"]), "label: labels go from 0 to 3, expected 0 to 2 for 3 class names; .*corr"),
        (class_label(names=["w", "x", "w", "z"]), "'label': names: 'w' found twice, .*; write the file again"),
        (class_label(names=["w", 1, "y", "z"]), r"'label': names\[1\]: found 1, expected text; write the file again"),
        (class_label(names="wxyz"), "'label': names: found 'wxyz', expected a list; write the file again"),
        (class_label(names=["w", "\ud800", "y", "z"]), r"names\[1\]: found .*, expected Unicode text"),
        (class_label(names=["w", "x\ny", "z", "a"]), r"class name 'x\\ny' found, expected text on one line"),
        ({"info": {"features": {"\ud800": {}}}}, "expected Unicode text"),
        ({"info": {"features": ["label"]}}, "info.features: found a list, expected an object"),
        (["info"], "metadata huggingface: expected an object"),
        (b'{"info": ', "is no JSON"),
        (b"\xff\xfe\xfd", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"info": {}, "info": {}}', "is no JSON .field 'info' is repeated"),
    ],
)
def test_notes_that_cannot_be_used(note, message):
    with pytest.raises(InputError, match=rf"f\.parquet: .*{message}") as error:
        classes(noted(note))
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "note",
    [
        {},
        {"info": None},
        {"info": {"features": None}},
        {"info": {"features": {"other": {"_type": "ClassLabel", "names": ["a", "a"]}}}},
        {"info": {"features": {"label": {"_type": "Value", "dtype": "int64"}}}},
        {"info": {"features": {"label": [{"dtype": "int64"}], "embedding": 3}}},
        class_label(num_classes=4),
        class_label(names=None),
        class_label(names=[]),
    ],
)
def test_notes_that_say_nothing_about_the_labels(note):
    assert classes(noted(note)) == ["0", "1", "2", "3"]

"""Labels and class names that cannot be imported: one line that says which, and what to do."""

import re
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, import_features

from .refusals import ROWS, refused


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.r_[ROWS.labels[:-1] + 0.0, 1.5],
            r"y is 1.5 in row 39, expected a whole",
        ),
        (
            np.r_[ROWS.labels[:-1] + 0.0, np.nan],
            r"y is missing \(null or NaN\) in row 39, expected a whole number or text; label",
        ),
        (np.r_[ROWS.labels[:-1] + 0.0, np.inf], "y is inf in row 39, expected a whole"),
        (np.r_[-1, -1, ROWS.labels[2:]], "y is -1 in row 0 \\(2 such rows of 40\\), expected 0 or more"),
        (np.zeros(40, int), r"a.npz: y: the training rows have one class only \(0\), expected .* `label_column`"),
    ],
)
def test_labels_that_cannot_be_used(labels, message):
    np.savez("a.npz", x=ROWS.features, y=labels)
    refused(message, "a.npz")


UNUSUAL = "were read from {!r}, which has {} different values in {} rows and may be no label; name another column with"


@pytest.mark.parametrize("values", [np.arange(40), np.array([f"caption {row % 30}" for row in range(40)])])
def test_a_column_that_is_no_label_is_warned_of_where_nothing_can_be_carved(values):
    pq.write_table(pa.table({"x": ROWS.features.tolist(), "text": values}), "a.parquet")
    warning = re.escape(UNUSUAL.format("text", len(set(values)), 40))
    refused(f"^a.parquet: text: no class has enough rows .* to carve val out of train.*{warning}", "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet: text: no class has enough .* give val=FILE$"):
        import_features("a.parquet", out="set", label_column="text")  # a person knows


def test_a_column_that_is_no_label_is_warned_of_where_the_splits_are_given():
    features = {f"{split}_x": ROWS.features for split in ("train", "val", "test")}
    rows = {f"{split}_row": np.arange(40) for split in ("train", "val", "test")}
    np.savez("a.npz", **features, **rows)
    found = import_features("a.npz", out="few").manifest.warnings
    assert "not-labels" not in [one.code for one in found]  # 40 classes, three rows each
    np.savez("b.npz", **features, **rows | {"test_row": np.arange(40, 80)})
    warnings = import_features("b.npz", out="many").manifest.warnings
    (found,) = [one.message for one in warnings if one.code == "not-labels"]
    assert UNUSUAL.format("train_row", 80, 120) in found


def test_labels_that_are_missing_or_of_two_kinds():
    pq.write_table(pa.table({"x": ROWS.features.tolist(), "y": ["a", None] * 20}), "a.parquet")
    refused(
        "a.parquet: y is missing \\(null\\) in row 1 \\(20 such rows of 40\\), expected a whole number or text",
        "a.parquet",
    )
    np.savez("train.npz", x=ROWS.features, y=ROWS.labels)
    np.savez("test.npz", x=ROWS.features, y=ROWS.labels.astype(str))
    refused("test.npz: y: some labels are numbers and some are text", "train.npz", "test.npz")


def test_labels_outside_of_the_class_names():
    Path("names.txt").write_text("a\nb\nc\nd\ne\n")
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels + 1)
    refused(
        r"from 1 to 5 \(do they count from 1\?\), expected 0 to 4 for 5 class names; the first wrong one is 5 in row 4",
        "a.npz",
        class_names="names.txt",
    )
    np.savez("b.npz", x=ROWS.features, y=np.array(list("abcdf"))[ROWS.labels])
    refused(r"is 'f' in row \d+, expected one of the 5 class names", "b.npz", class_names="names.txt")
    Path("twice.txt").write_text("a\nb\na\n")
    refused("twice.txt: 3 class names, twice: 'a'; give one for every class", "b.npz", class_names="twice.txt")
    Path("empty.txt").write_text("a\n\nb\n")
    refused("empty.txt: 3 class names, some empty", "b.npz", class_names="empty.txt")
    refused("none.txt: not found", "b.npz", class_names="none.txt")


def test_class_names_as_windows_saves_them():
    """A mark at the begin, CRLF and blank lines at the end are no part of a name."""
    Path("names.txt").write_bytes("\ufeffant\r\nbee\r\ncat\r\ndog\r\nemu\r\n\r\n".encode())
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels)
    assert import_features("a.npz", out="set", class_names="names.txt").class_names == [
        "ant",
        "bee",
        "cat",
        "dog",
        "emu",
    ]


def test_class_names_that_are_no_text():
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels)
    Path("latin.txt").write_bytes(b"ant\nb\xe9e\n")
    refused("latin.txt: line 2: byte 0xe9 is not UTF-8", "a.npz", class_names="latin.txt")
    refused("/dev/zero: is a device, expected a regular file", "a.npz", class_names="/dev/zero")


def test_class_names_that_differ_between_splits():
    data = {"x": ROWS.features.tolist(), "label": ROWS.labels}
    for split, names in (("train", "abcde"), ("test", "edcba")):
        kind = datasets.ClassLabel(names=list(names))
        datasets.Dataset(pa.table(data)).cast_column("label", kind).save_to_disk(split)
    refused("test: label: its class names are not those of", "train=train", "test=test")


@pytest.mark.parametrize("out", [None, "set"])
def test_class_names_that_repeat(out):
    with pytest.raises(InputError, match="class_names: 5 class names, twice: 'a', 'b'; give one for every class"):
        FeatureSet.from_arrays(ROWS.features, ROWS.labels, class_names=list("aabbc"), out=out)
    assert not Path("set").exists()

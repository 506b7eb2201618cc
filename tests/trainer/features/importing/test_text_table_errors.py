"""Cells of CSV files that cannot be read are told with line, column and value."""

import csv
import io
import warnings
import zipfile

import numpy as np
import pytest
import torch

from headsmith import FeatureSet, import_features, inspect_features
from headsmith.core.errors import InputError
from headsmith.trainer.features.importing import csv_table
from headsmith.trainer.features.importing.csv_table import read_csv_table

HEADING = "f0,f1,f2,label"
ROWS = [f"{i * 0.5},{i % 7 + 0.25},{-i * 0.125},{i % 3}" for i in range(60)]


def table(tmp_path, place, row, heading=HEADING):
    path = tmp_path / "x.csv"
    path.write_text("\n".join([heading, *ROWS[:place], row, *ROWS[place:]]) + "\n", encoding="utf-8")
    return path


BAD = [
    ("0.1,abc,0.3,1", "f1: 'abc' found, expected a number"),
    ("0.1,,0.3,1", "f1: '' found, expected a finite number"),
    ("0.1,nan,0.3,1", "f1: 'nan' found, expected a finite number"),
    ("1e999,0.2,0.3,1", "f0: '1e999' found, expected a finite number"),
    ("0.1,0.2,0.3,", "label: '' found, expected a whole number or text"),
    ("0.1,0.2,0.3,1.5", "label: '1.5' found, expected a whole number or text"),
    ("0.1,0.2,0.3,-1", "label: '-1' found, expected 0 or more"),
    ("0.1,1e39,0.3,1", r"f1: '1e39' found, expected at most float32's 3.4e\+38"),
    ("0.1,-1e39,0.3,1", r"f1: '-1e39' found, expected at most float32's 3.4e\+38"),
    ("0.1,0.2,0.3," + "9" * 5000, "label: '999[9…]+' found, expected a whole number of 64 bits"),
    ("0.1,0.2,0.3", "3 columns, expected 4"),
    ('0.1,"0.2', "cannot be read as a row"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_cell_is_told_with_line_and_column(row, message, tmp_path):
    with pytest.raises(InputError, match=rf"x\.csv: line \d+: {message}") as excinfo:
        import_features(table(tmp_path, 20, row), out=tmp_path / "set")
    if "cannot be read" not in message:
        assert ": line 22: " in str(excinfo.value)
    assert len(str(excinfo.value)) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(("row", "message"), [*BAD[:4], ("0.1,0.2,0.3,cat", "label: 'cat' found, expected a whole")])
def test_so_it_is_behind_the_rows_that_decide_the_types(row, message, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "_HEAD_BYTES", 200)
    with pytest.raises(InputError, match=rf"x\.csv: line 42: {message}"):
        import_features(table(tmp_path, 40, row), out=tmp_path / "set")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"1,000",0.2,0.3,1', "f0: '1,000' found, expected a number with '.' as in the other rows; correct this cell"),
        ('0.1,0.2,"-,5",1', "f2: '-,5' found, expected a number with '.'"),
        ("0.1,0.2,0.3,+0", r"label: '\+0' found, expected a whole number without a sign \+"),
        ("0.1,\u0661,0.3,1", "f1: '\u0661' found, expected a number"),
        ("0.1,0.2\u00a0,0.3,1", "f1: '0.2\\\\xa0' found, expected a number"),
        ("0.1,0.2,0.3,1\u2003", "label: '1\\\\u2003' found, expected a whole number"),
    ],
)
@pytest.mark.parametrize("place", [0, 20])
def test_numbers_that_a_reader_of_tables_does_not_take(row, message, place, tmp_path):
    with pytest.raises(InputError, match=rf"x\.csv: line {place + 2}: {message}"):
        import_features(table(tmp_path, place, row), out=tmp_path / "set")


@pytest.mark.parametrize(
    ("row", "usual", "message"),
    [
        ("0,5;0.5;0.25;1", ".", "f0: '0,5' found, expected a number with '.'"),
        ("0,5;0.5;0,25;1", ",", "f1: '0.5' found, expected a number with ','"),
        ("0,5;1,5;+0.25;1", ",", r"f2: '\+0.25' found, expected a number with ','"),
    ],
)
def test_the_decimal_sign_that_few_numbers_have_is_told(row, usual, message, tmp_path):
    rows = [one.replace(",", ";").replace(".", usual) for one in ROWS]
    (tmp_path / "x.csv").write_text("\n".join([HEADING.replace(",", ";"), *rows[:20], row, *rows[20:]]))
    with pytest.raises(InputError, match=rf"x\.csv: line 22: {message}"):
        import_features(tmp_path / "x.csv", out=tmp_path / "set")


@pytest.mark.parametrize(
    "first", ["0,1,0,2", "5,3,9,1", "0,0,0,cat", "-1,-1,4,2", "1.5,2,3,1", '"1,000",2,3,1'], ids=lambda first: first
)
def test_a_table_without_a_heading_is_asked_for_one(first, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join([first, *ROWS]))
    with pytest.raises(InputError, match=r"x\.csv: line 1: .* in it.*, expected a header such as f0, f1, label$"):
        import_features(tmp_path / "x.csv", out=tmp_path / "set")


@pytest.mark.parametrize("cell", ["+0.5", "1.", ".5", "1E+1", "  2.5 ", "-0", "+1"])
def test_other_spellings_of_numbers_are_read(cell, tmp_path):
    made = import_features(table(tmp_path, 20, f"{cell},0.2,0.3,1"), out=tmp_path / "set")
    kept = torch.cat([made.arrays(split)[0][:, 0] for split in made.splits])
    assert (kept == float(cell)).any()


def test_blank_lines_and_quoted_line_breaks_count(tmp_path):
    path = table(tmp_path, 20, '\n"0.1","abc\n","0.3",1')
    with pytest.raises(InputError, match=r"line 24: f1: 'abc' found"):
        import_features(path, out=tmp_path / "set")


def test_long_names_and_values_are_cut(tmp_path):
    path = table(tmp_path, 3, "0.1,0.2,0.3,1", HEADING.replace("f1", "f" * 5000 + "1"))
    with pytest.raises(InputError) as excinfo:
        import_features(path, out=tmp_path / "set", label_column="lable")
    assert len(str(excinfo.value)) < 600 + len(str(tmp_path))


def test_a_misspelt_column_gets_the_nearest_name(tmp_path):
    with pytest.raises(InputError, match=r"`label_column` 'lable' found, expected one of label; did you mean label\?"):
        import_features(table(tmp_path, 3, ROWS[0]), out=tmp_path / "set", label_column="lable")


def test_twenty_thousand_columns(tmp_path):
    """Values as Python's own reader has them; what is quadratic in the columns would take a minute."""
    values = np.random.default_rng(0).normal(size=(12, 20_000)).round(3)
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{place}" for place in range(20_000)), "label"])
        writer.writerows([*row, place % 3] for place, row in enumerate(values.tolist()))
    [read] = read_csv_table(path)
    assert [(column.name, column.shape) for column in read.columns] == [("f*", (12, 20_000)), ("label", (12,))]
    np.testing.assert_array_equal(np.concatenate(list(read.columns[0].blocks())), values)


def test_rows_that_are_equal_are_told(tmp_path):
    path = tmp_path / "x.csv"
    torn = [row[:-1] + str((int(row[-1]) + 1) % 3) for row in ROWS[10:13]]
    path.write_text("\n".join([HEADING, *ROWS, *ROWS[:5], *torn]) + "\n")
    made = import_features(path, out=tmp_path / "set")
    [warning] = made.manifest.warnings
    assert str(warning).startswith("leak: 16 rows are equal to another row, ")
    assert "6 of them to a row of another class" in warning.message
    assert warning.message.endswith("see `headsmith inspect`")
    assert inspect_features(made).problems


def test_rows_that_differ_and_rows_of_zeros_are_no_copies(tmp_path):
    features = np.random.default_rng(0).normal(size=(60, 3))
    features[:3] = 0
    assert FeatureSet.from_arrays(features, np.arange(60) % 3).manifest.warnings == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, "a", 1.5] * 20, "labels: 0 in row 0 and 'a' in row 1, expected numbers or text, not both"),
        (["a", "b", 2] * 20, "labels: 'a' in row 0 and 2 in row 2, expected numbers or text, not both"),
        (np.array([0, "a", 1.5] * 20, object), "labels is 'a' in row 1"),
        ([0, 1, None] * 20, r"labels is missing \(null\) in row 2"),
        ([[0], [1, 2]] * 30, "labels: no array can be made of it"),
        (None, "labels: None found, expected an array"),
    ],
)
def test_labels_of_several_kinds(labels, message):
    with pytest.raises(InputError, match=message):
        FeatureSet.from_arrays(np.eye(60, 3), labels)


def test_labels_of_several_kinds_in_a_file_of_torch(tmp_path):
    torch.save({"features": torch.eye(60), "labels": [0, "a", 1.5] * 20}, tmp_path / "x.pt")
    with pytest.raises(InputError, match=r"x\.pt: labels: 0 in row 0 and 'a' in row 1, expected numbers or text"):
        import_features(tmp_path / "x.pt", out=tmp_path / "set")


def test_whole_numbers_as_objects_are_labels():
    made = FeatureSet.from_arrays(np.random.default_rng(0).normal(size=(60, 3)), np.array([5, 7, 9] * 20, object))
    assert made.class_names == ["5", "7", "9"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f0,f1,label\n1,2,a\n3,4,\n", "line 3: label: '' found, expected a whole number or text"),
        ("f0,f1,label\n", "line 1: no row below it, expected a header such as f0, f1, label and then rows"),
    ],
)
def test_an_unlabelled_row_and_a_heading_alone_are_told(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        import_features(tmp_path / "t.csv", out=tmp_path / "set")


def test_a_member_that_stands_twice_has_no_flag_that_could_choose_it(tmp_path):
    member = io.BytesIO()
    np.save(member, np.ones((4, 3), np.float32))
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("features.npy", member.getvalue())
        archive.writestr("features.npy", member.getvalue())
    with pytest.raises(InputError, match="'features' found twice"):
        import_features(tmp_path / "t.npz", out=tmp_path / "set")


@pytest.mark.parametrize(
    ("heading", "cell", "other", "said"),
    [
        ("id", "", "a{}", "id: '' found, expected an id in every row"),
        ("split", "dev", "train", "split: 'dev' found, expected train, val or test"),
        ("label", "cta", "cat", "label: 'cta' found, expected one of the 2 class names; did you mean cat?"),
        ("label", "2", "1", "label: '2' found, expected 0 to 1 for 2 class names, labels go from 1 to 2"),
    ],
)
def test_ids_splits_and_labels_are_told_with_their_line(heading, cell, other, said, tmp_path):
    cells = [other.format(row) for row in range(30)]
    cells[20] = cell
    labels = "" if heading == "label" else ",label"
    rows = [f"0.{row},0.5,{one}{labels and f',{row % 2}'}" for row, one in enumerate(cells)]
    (tmp_path / "x.csv").write_text("\n".join([f"f0,f1,{heading}{labels}", *rows]))
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    options = {"id_column": "id"} if heading == "id" else {"class_names": tmp_path / "names.txt"}
    with pytest.raises(InputError) as excinfo:
        import_features(tmp_path / "x.csv", out=tmp_path / "set", **options)
    assert f"x.csv: line 22: {said}" in str(excinfo.value)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.arange(60) % 3 + 0.5, "all 60 labels are fractions, such as 0.5, expected a whole number"),
        (-1 - np.arange(60) % 3, "all 60 labels are below 0, such as -1, expected 0 or more"),
        (np.array([b"a", b"b", b"c"] * 20), "all 60 labels are of type bytes, such as b'a', expected a whole number"),
        (
            np.datetime64("2020-01-01", "ns") + np.arange(60) % 3,
            r"all 60 .* of type datetime64\[ns\], .*, not times",
        ),
        (np.array([(1,), (2, 3)] * 30, object), "all 60 labels are of type list, such as"),
        (
            np.full(60, np.nan),
            r"labels is missing \(null or NaN\) in row 0 \(60 such rows of 60\), .*; label these rows",
        ),
        (np.array([None] * 60, object), r"labels is missing \(null\) in row 0 .*; label these rows"),
        (np.array([0.5, *[1.0, 2.0] * 29, 1.0]), "labels is 0.5 in row 0, .*; correct these labels"),
    ],
    ids=["fractions", "below 0", "bytes", "times", "lists", "nan", "none", "one of many"],
)
def test_labels_that_are_all_of_another_kind(labels, said):
    features = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(InputError, match=said):
        FeatureSet.from_arrays(features, labels)

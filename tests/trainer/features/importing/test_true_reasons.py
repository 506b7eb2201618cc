"""Files that are refused for the reason that they have, in words that help."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Sequence, Value
from safetensors.torch import save_file

from headsmith import import_features
from headsmith.core.errors import InputError

X = np.random.default_rng(0).random((60, 4)).astype(np.float32)
Y = np.arange(60) % 3


def refused(path, message, **asked):
    with pytest.raises(InputError, match=message) as error:
        import_features([path], out=path.parent / "out", **asked)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz])
def test_narrow_floats_of_safetensors(tmp_path, dtype):
    save_file({"features": torch.tensor(X).to(dtype), "labels": torch.tensor(Y)}, tmp_path / "a.safetensors")
    refused(
        tmp_path / "a.safetensors", r"features F8_E\w+ \(60, 4\) is of a type that is not read; write it as float32"
    )


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list_view])
def test_list_views_of_arrow(tmp_path, kind):
    table = pa.table({"features": pa.array(X.tolist(), kind(pa.float32())), "label": Y})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    refused(tmp_path / "a.arrow", r"list_view<.*> \(60\) is of a type that is not read; write it as lists, in pyarrow")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (pa.array([None, *Y[1:].tolist()]), r"label is missing \(null or NaN\) in row 0"),
        (pa.array(["a", None, *"bc" * 29]), r"label is missing \(null\) in row 1"),
        (pa.array([True, False, None] * 20), r"label is missing \(null\) in row 2 \(20 such rows of 60\)"),
        (pa.array([None] * 60), r"label is missing \(null\) in row 0 \(60 such rows of 60\)"),
    ],
)
def test_a_label_that_is_null(tmp_path, labels, told):
    table = pa.table({"features": pa.array(X.tolist(), pa.list_(pa.float32())), "label": labels})
    pq.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", rf"a\.parquet: {told}.*; label these rows or remove them")


@pytest.mark.parametrize(("cell", "column"), [("0x10", "label"), ("-0X1f", "label"), ("0x2", "f1")])
def test_hexadecimal_numbers_far_below(tmp_path, monkeypatch, cell, column):
    monkeypatch.setattr("headsmith.trainer.features.importing.csv_table._HEAD_BYTES", 300)
    monkeypatch.setattr("headsmith.trainer.features.importing.csv_table._BLOCK_BYTES", 64)
    lines = [f"{row},{row * 7},{row % 3}" for row in range(60)]
    lines[50] = f"50,350,{cell}" if column == "label" else f"50,{cell},2"
    (tmp_path / "a.csv").write_text("\n".join(["f0,f1,label", *lines]) + "\n")
    refused(tmp_path / "a.csv", rf"line 52: {column}: '{re.escape(cell)}' found, expected a whole number")


def test_text_with_hexadecimal_numbers_stays_text(tmp_path):
    lines = [f"{row},{row * 7},{row % 3},0x{row}" for row in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["f0,f1,label,id", *lines]) + "\n")
    assert import_features([tmp_path / "a.csv"], out=tmp_path / "out").ids("train")[0] == "0x0"


@pytest.mark.parametrize("other", ["label", "target", "y"])
def test_class_names_beside_another_column_of_labels(tmp_path, other):
    kinds = Features(
        {"x": Sequence(Value("float32")), "fine": ClassLabel(names=["a", "b", "c"]), other: Value("int64")}
    )
    path = tmp_path / "a.parquet"
    Dataset.from_dict({"x": X.tolist(), "fine": Y.tolist(), other: (Y % 2).tolist()}, features=kinds).to_parquet(path)
    refused(path, rf"several columns that may be labels: fine int64 \(60\), {other} int64 \(60\); say which")
    found = import_features([path], out=tmp_path / "out", label_column="fine")
    assert found.class_names == ["a", "b", "c"]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros(60, [("f0", "f4"), ("label", "i8")]), "a structured array with the fields f0, label"),
        (np.zeros((60, 4), [("x", "f4")]), "a structured array with the fields x"),
        (np.zeros(60, "V2"), r"an array of raw bytes \(\|V2\)"),
    ],
)
def test_an_array_of_records_is_called_so(tmp_path, array, found, beside):
    np.save(tmp_path / "a.npy", array)
    if beside:
        np.save(tmp_path / "a_labels.npy", Y)
    refused(tmp_path / "a.npy", rf"a\.npy: {found} found, expected one of plain numbers")

"""A table with a column for each feature gives the same rows as one with a list column."""

from decimal import Decimal

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import WIDTH, check_aligned, planted

ROWS = planted(60)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def columns(template="f{}", first=0, features=ROWS.features):
    return {template.format(first + place): values for place, values in enumerate(features.T)}


def write(name, **parts):
    pq.write_table(pa.table(parts), name, row_group_size=11)
    return name


def same_as_a_list(file, **options):
    expected = import_features(
        write("list.parquet", x=ROWS.features.tolist(), y=ROWS.labels), out="list", overwrite=True
    )
    found = import_features(file, out="set", overwrite=True, **options)
    assert check_aligned(found) == set(range(60))
    for split in expected.splits:
        assert torch.equal(found.arrays(split)[0], expected.arrays(split)[0])
    return found


@pytest.mark.parametrize(("template", "first"), [("f{}", 0), ("dim_{}", 1), ("{}", 0), ("emb.{:03}", 0)])
def test_numbered_columns_are_a_matrix(template, first):
    found = same_as_a_list(write("a.parquet", label=ROWS.labels, **columns(template, first)))
    prefix = template.partition("{")[0]
    assert found.manifest.imported.columns["a.parquet"]["features"] == f"{prefix}*"
    assert found.manifest.imported.not_read == []


def test_numbers_count_not_the_order_of_the_columns():
    wide = np.random.default_rng(0).normal(size=(60, 12)).astype(np.float32)
    as_text = dict(sorted(columns(features=wide).items()))  # f0, f1, f10, f11, f2, ...
    frame = pd.DataFrame({**as_text, "label": ROWS.labels})
    frame.to_parquet("a.parquet")
    found = import_features("a.parquet", out="set")
    rows = torch.cat([found.arrays(split)[0] for split in found.splits]).numpy()
    assert sorted(map(tuple, rows)) == sorted(map(tuple, wide))


def test_folders_of_datasets_and_columns_of_several_dtypes():
    parts = columns()
    parts["f1"] = parts["f1"].astype(np.float16)
    parts["f2"] = np.arange(60)
    datasets.Dataset.from_dict({**parts, "label": ROWS.labels}).save_to_disk("saved")
    found = import_features("saved", out="set")
    assert found.feature_dim == WIDTH
    assert found.arrays("train")[0][:, 2].tolist() == found.arrays("train")[0][:, 0].tolist()


def test_two_runs_are_asked_for_by_their_beginning():
    file = write("a.parquet", label=ROWS.labels, **columns("clip_{}"), **columns("dino_{}", features=-ROWS.features))
    with pytest.raises(InputError, match=r"several columns that may be features: clip_\* float32 \(60, 6\), dino_\*"):
        import_features(file, out="set")
    for name in ("clip_*", "clip"):
        assert same_as_a_list(file, feature_column=name).manifest.imported.not_read == ["dino_*"]


def test_a_list_column_wins_and_whole_numbers_are_no_features():
    file = write("a.parquet", x=ROWS.features.tolist(), y=ROWS.labels, score_0=ROWS.features[:, 0], score_1=[0.5] * 60)
    assert same_as_a_list(file).manifest.imported.not_read == ["score_0", "score_1"]
    labels = {"label_0": ROWS.labels, "label_1": np.arange(60)}
    same_as_a_list(write("b.parquet", **columns(), **labels), label_column="label_0")


def test_tables_beside_an_array_have_no_features():
    np.save("img_emb_0.npy", ROWS.features)
    write("metadata_0.parquet", label=ROWS.labels, nsfw_0=ROWS.features[:, 1], nsfw_1=ROWS.features[:, 2])
    assert same_as_a_list("img_emb_0.npy").manifest.imported.not_read == ["nsfw_*"]


def test_a_gap_is_no_matrix_and_the_message_says_what_would_be():
    parts = columns()
    del parts["f3"]
    message = (
        r"no features \(expected a matrix \(N, D\) of floats, or columns f0, f1, ... of a table\), f3 is missing, .*"
        r"; others are label"
    )
    with pytest.raises(InputError, match=message):
        import_features(write("a.parquet", label=ROWS.labels, **parts), out="set")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["f0", "f1", "f3"], ", f2 is missing, "),
        (["f2", "f3", "f4"], ", f1 is missing, "),
        (["e00", "e01", "e03", "e04", "e06"], ", e02 and 1 more is missing, "),
        (["f0", "f1", "word2", "f3"], ", f2 is missing, "),
        (["f7", "f999999999999"], "), others are "),
        (["label_1", "label_3"], "), others are "),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_gap_is_named(names, said, suffix):
    table = pd.DataFrame(ROWS.features[:, : len(names)], columns=names).assign(label=ROWS.labels)
    table.to_parquet("x.parquet") if suffix == "parquet" else table.to_csv("x.csv", index=False)
    with pytest.raises(InputError) as excinfo:
        import_features(f"x.{suffix}", out="set", label_column="label")
    assert said in str(excinfo.value)


def test_a_column_of_text_among_numbers_is_the_gap():
    parts = columns() | {"f3": [f"word {row}" for row in range(60)]}
    with pytest.raises(InputError, match=r", f3 holds str, and numbers without a gap"):
        import_features(write("a.parquet", label=ROWS.labels, **parts), out="set")


def test_an_empty_cell_is_a_nan():
    parts = columns()
    parts["f4"] = pa.array([*parts["f4"][:33], None, *parts["f4"][34:]])
    with pytest.raises(InputError, match=r"a.parquet: f\*: NaN or infinite features in row 33"):
        import_features(write("a.parquet", label=ROWS.labels, **parts), out="set")


@pytest.mark.parametrize(
    ("odd", "template", "cells"), [(6, "f{}", "12%"), (0, "f{}", "0x1f"), (7, "emb.{:02}", "high"), (6, "{}", "1 000")]
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_of_the_series_that_holds_text_is_told(odd, template, cells, suffix):
    frame = pd.DataFrame({"label": ROWS.labels, **columns(template, 0 if odd else 1)})
    frame.insert(1, template.format(odd), cells)
    getattr(frame, f"to_{suffix}")(f"a.{suffix}", index=False)
    (found,) = import_features(f"a.{suffix}", out="set", label_column="label").manifest.warnings
    assert found.code == "left-out-feature"
    held = f"is no number: a.csv: line 2: {template.format(odd)}: '{cells}'" if suffix == "csv" else "holds str"
    assert found.message.startswith(f"{template.format(odd)} {held}; it is not among the features ")


def test_a_column_of_the_series_that_is_the_label_is_no_fault():
    frame = pd.DataFrame(columns("c{}")).assign(c6=[f"class {label}" for label in ROWS.labels], note="c7")
    frame.to_csv("a.csv", index=False)
    assert import_features("a.csv", out="set", label_column="c6").manifest.warnings == []


@pytest.mark.parametrize("names", [["sepal"], ["sepal", "petal width"]])
def test_floats_beside_the_series_are_told(names):
    frame = pd.DataFrame({**dict.fromkeys(names, 0.5), **columns(), "label": ROWS.labels, "count": 3})
    frame.to_parquet("a.parquet", index=False)
    (found,) = import_features("a.parquet", out="set", label_column="label").manifest.warnings
    assert found.code == "left-out-number"
    assert found.message.startswith(f"{', '.join(names)} hold numbers and are not among the features f*")


@pytest.mark.parametrize("labels", [["a", "b"] * 10, [Decimal(1), Decimal(2)] * 10])
def test_decimals_are_to_be_cast(labels):
    values = [Decimal("0.125")] * 20
    pq.write_table(pa.table({"f0": values, "f1": values, "label": labels}), "a.parquet")
    with pytest.raises(InputError, match=r"has no features .* decimal128.*: cast the decimal columns to float32$"):
        import_features("a.parquet", out="set")

"""What is lost where float64 becomes float32, or float32 float16, is told; numpy's own casts say what is lost."""

import numpy as np
import pandas as pd
import pytest
import torch

from headsmith.trainer import FeatureSet, import_features

ROWS = np.random.default_rng(0).normal(size=(60, 4))
LABELS = np.arange(60) % 3


def changed(column, values, rows=ROWS):
    found = rows.copy()
    found[:, column] = values
    return found


def told(features, **options):
    warnings = [one.message for one in FeatureSet.from_arrays(features, LABELS, **options).manifest.warnings]
    return [text for text in warnings if text.startswith("as float")]


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (
            changed(1, 1e-60 * (1 + np.arange(60))),
            "60 values that are not 0 become 0, in column 1; 1 of 4 columns become constant: column 1;",
        ),
        (changed(2, [1e-300] + [1.0] * 30 + [2.0] * 29), "1 value that is not 0 becomes 0, in column 2;"),
        (changed(2, 1e9 + np.random.default_rng(1).random(60)), "1 of 4 columns become constant: column 2;"),
        (changed(0, 2**40 + np.arange(60), (10 * ROWS).astype(np.int64)), "1 of 4 columns become constant: column 0;"),
        (np.concatenate([ROWS[:59], ROWS[:1] + 1e-12]), "2 rows that differ become equal to another;"),
        (np.concatenate([ROWS[:58], [[1e-60] * 4, [0.0] * 4]]), "; 2 rows that differ become equal to another;"),
    ],
    ids=["a column", "a value", "far from 0", "whole numbers", "rows", "a row and zeros"],
)
def test_what_float32_cannot_hold_is_told(features, expected):
    (text,) = told(features)
    assert expected in text
    assert "import with" not in text


@pytest.mark.parametrize(
    "features",
    [
        ROWS,
        ROWS.astype(np.float32) * np.float32(1e-44),
        np.concatenate([ROWS[:30], ROWS[:30]]),
        changed(1, 7.1),
        changed(1, 0.0),
        changed(1, np.where(LABELS == 0, -0.0, 0.0)),
        (ROWS * 100).astype(np.int16),
    ],
    ids=["float64", "float32", "equal rows", "a constant", "zeros", "zeros with a sign", "int16"],
)
def test_what_is_not_lost_is_not_told(features):
    assert told(features) == []


def test_float16_names_the_way_out():
    small = ROWS.astype(np.float32) * np.float32(1e-9)
    (text,) = told(small, dtype="float16")
    assert f"{np.count_nonzero(small.astype(np.float16) == 0)} values that are not 0 become 0" in text
    assert "store them with `dtype` float32" in text
    assert told(torch.tensor(small).bfloat16(), dtype="float32") == []


def test_columns_of_files_are_called_by_their_names(tmp_path):
    table = pd.DataFrame(changed(2, 1e-60), columns=["f0", "f1", "f2", "f3"]).assign(label=LABELS)
    table.to_parquet(tmp_path / "x.parquet")
    table.to_csv(tmp_path / "x.csv", index=False)
    for file in ("x.parquet", "x.csv"):
        made = import_features(tmp_path / file, out=tmp_path / "set", overwrite=True)
        assert "as float32, 60 values that are not 0 become 0, in f2;" in made.manifest.warnings[-1].message


def test_files_of_several_dtypes_and_equal_rows(tmp_path):
    rows = ROWS.astype(np.float32)
    np.savez(tmp_path / "train.npz", x=np.tile(rows, (3, 1)).astype(np.float64), y=np.tile(LABELS, 3))
    np.savez(tmp_path / "test.npz", x=rows, y=LABELS)
    made = import_features([tmp_path / "train.npz", tmp_path / "test.npz"], out=tmp_path / "set")
    assert not any(one.code == "precision" for one in made.manifest.warnings)

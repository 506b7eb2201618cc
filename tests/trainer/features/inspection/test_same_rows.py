"""Copies among features are found although networks round, and rows of different pictures are none."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.metrics import pairwise_distances

from headsmith.trainer.features import FeatureSet, inspect_features
from headsmith.trainer.features.columns import Columns
from headsmith.trainer.features.inspection.equal_rows import TOLERANCE, same_rows


def rounded_again(rows, rng, most=13):
    """The same rows as another batch size gives them: 2 to 13 entries are the next float16."""
    found = rows.copy()
    for row in found:
        places = rng.choice(len(row), rng.integers(2, most + 1), replace=False)
        row[places] = np.nextafter(row[places], np.float16(rng.choice([-1, 1]) * 1e4))
    return found


def inspected(features, labels):
    return inspect_features(FeatureSet.from_arrays(features, labels))


def compared(**rows):
    """Which rows repeat an earlier one of their split, and which one of an earlier split; ten classes."""
    columns = {
        split: Columns(pa.array([f"{split}{n}" for n in range(len(one))]), np.arange(len(one)) % 10, one)
        for split, one in rows.items()
    }
    hashes = {split: np.array([hash(row.tobytes()) for row in one]) for split, one in rows.items()}
    usable = {split: np.abs(one).sum(axis=1) > 0 for split, one in rows.items()}
    marks = same_rows(columns, hashes, usable)
    return [{split: np.flatnonzero(mark).tolist() for split, mark in part.items()} for part in marks]


def pooled(rng, count, width=1280):
    """Like the averages of a last layer: positive, of different sizes a column."""
    return (np.abs(rng.normal(size=(count, width))) * rng.exponential(size=width)).astype(np.float16)


def test_rows_that_differ_by_rounding_are_found_within_and_across_splits():
    rng = np.random.default_rng(0)
    train = pooled(rng, 600)
    val = np.concatenate([rounded_again(train[:9], rng), pooled(rng, 3)])
    test = np.concatenate([pooled(rng, 2), rounded_again(train[100:108], rng), rounded_again(val[9:11], rng)])
    features = {"train": np.concatenate([train, rounded_again(train[300:305], rng)]), "val": val, "test": test}
    found = inspected(features, {split: np.arange(len(rows)) % 3 for split, rows in features.items()})
    assert {split: rows.count for split, rows in found.leaked_rows.items()} == {"val": 9, "test": 10}
    assert found.leaked_rows["val"].rows == [0, 1, 2, 3, 4]
    assert {split: report.duplicates.count for split, report in found.splits.items()} == {
        "train": 5,
        "val": 0,
        "test": 0,
    }
    assert sum("are equal to rows of an earlier split" in one.message for one in found.problems) == 2


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([8, 64, 300]),
    offset=st.sampled_from([0.0, 5.0]),
    copies=st.integers(0, 12),
    times=st.integers(1, 3),
)
def test_exactly_what_comparing_all_pairs_finds(seed, width, offset, copies, times):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(120, width)) + offset).astype(np.float32)
    noise = rng.normal(size=(copies * times, width)) * 2e-5 * np.linalg.norm(rows, axis=1).mean() / width**0.5
    rows = np.concatenate([rows, np.tile(rows[:copies], (times, 1)) + noise]).astype(np.float32)
    lengths = np.linalg.norm(rows.astype(float), axis=1)
    near = pairwise_distances(rows.astype(float)) <= TOLERANCE * lengths[:, None]
    expected = np.flatnonzero(np.tril(near, -1).any(axis=1))
    repeated, _ = compared(train=rows)
    assert repeated["train"] == expected.tolist()
    assert len(expected) == copies * times


def test_digits_have_no_copies():
    """Of 1,797 digits of 8 x 8 pixels none is another one."""
    digits = load_digits().data.astype(np.float32)
    assert compared(train=digits[:1200], val=digits[1200:]) == [{"train": [], "val": []}] * 2


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(lambda rng: rng.normal(size=(3000, 2)), id="two columns, where rows are near by chance"),
        pytest.param(
            lambda rng: np.eye(10)[np.arange(500) % 10] + rng.normal(size=(500, 10)) * 1e-5, id="narrow classes"
        ),
        pytest.param(
            lambda rng: rng.normal(size=(2, 64))[[0] * 400] * (1 + np.arange(400))[:, None], id="one direction"
        ),
        pytest.param(lambda rng: rng.integers(0, 2, (400, 40)).astype(float), id="bits"),
        pytest.param(lambda rng: 1000 + rng.normal(size=(400, 64)), id="far from the origin"),
    ],
)
def test_other_rows_are_no_copies(rows):
    rows = rows(np.random.default_rng(0)).astype(np.float32)
    assert len(np.unique(rows, axis=0)) == len(rows)
    half = len(rows) // 2
    assert compared(train=rows[:half], val=rows[half:]) == [{"train": [], "val": []}] * 2


def test_zero_and_equal_rows_of_few_columns():
    rows = np.array([[0, 0], [0, 0], [1, 2], [1, 2], [3, 1], [2, 2]], np.float32)
    assert compared(train=rows, val=rows[[2, 0]]) == [{"train": [3], "val": []}, {"train": [], "val": [0]}]


ROUNDED = {
    "float16": lambda rows: rows.astype(np.float16),
    "bfloat16": lambda rows: torch.tensor(rows).bfloat16().float().numpy(),
    "2 decimals": lambda rows: np.round(rows, 2),
    "3 decimals": lambda rows: np.array([[f"{value:.3f}" for value in row] for row in rows], np.float64),
    "4 decimals": lambda rows: np.round(rows, 4),
}


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("scale", [1.0, 0.02], ids=["of size 1", "of unit rows"])
def test_rows_with_fewer_digits_are_copies(name, scale):
    rng = np.random.default_rng(0)
    rows = pooled(rng, 320, width=96).astype(np.float64) * rng.normal(1, 0.1, (320, 96)) * scale * 4
    rows[rng.random(rows.shape) < 0.5] = 0
    train, copies = rows[:300].astype(np.float32), ROUNDED[name](rows[:20])
    val = np.concatenate([rows[300:], copies]).astype(np.float32)
    repeated, leaked = compared(train=train, val=val)
    assert leaked == {"train": [], "val": list(range(20, 40))}
    assert repeated == {"train": [], "val": []}
    assert compared(train=val, val=train)[1]["val"] == list(range(20))


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_rows_are_no_copies_of_others(name):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 8)).astype(np.float32)
    val = np.concatenate([rows[200:300], ROUNDED[name](rows[300:]).astype(np.float32)])
    assert compared(train=rows[:200], val=val) == [{"train": [], "val": []}] * 2


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_diabetes])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_tables_of_few_digits_have_no_copies(load, dtype):
    """No two rows of these sets are equal as they are published."""
    rows = load().data
    assert len(np.unique(rows, axis=0)) == len(rows)
    half = len(rows) // 2
    assert compared(train=rows[:half].astype(dtype), val=rows[half:].astype(dtype)) == [{"train": [], "val": []}] * 2

"""Ids that are whole numbers: they tell copies and leaks as text does, and keep all of their digits."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import CLASSES, check_aligned, planted

ROWS, OTHERS = planted(60), planted(40, first=60)
BIG = 2**62 + np.arange(60) // 2  # neighbours are one number in float64
FEATURES = [f"f{column}" for column in range(6)]


def write_parquet(ids):
    pq.write_table(pa.table({"x": ROWS.features.tolist(), "label": ROWS.labels % 2, "id": ids}), "a.parquet")
    return "a.parquet"


def write_csv(ids):
    lines = [
        ",".join(map(str, [*row, label % 2, one]))
        for row, label, one in zip(ROWS.features, ROWS.labels, ids, strict=True)
    ]
    Path("a.csv").write_text("\n".join([",".join([*FEATURES, "label", "id"]), *lines]))
    return "a.csv"


def write_npz(ids):
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels % 2, ids=ids)
    return "a.npz"


def write_samples(ids):
    rows = zip(torch.from_numpy(ROWS.features), ROWS.labels.tolist(), ids.tolist(), strict=True)
    torch.save([{"embedding": row, "label": label % 2, "id": one} for row, label, one in rows], "a.pt")
    return "a.pt"


def write_column(ids):
    torch.save(
        {
            "x": torch.from_numpy(ROWS.features),
            "y": torch.from_numpy(ROWS.labels % 2),
            "id": torch.from_numpy(ids)[:, None],
        },
        "b.pt",
    )
    return "b.pt"


@pytest.mark.parametrize("write", [write_parquet, write_csv, write_npz, write_samples, write_column])
@pytest.mark.parametrize("ids", [BIG, np.arange(60) // 2 - 7], ids=["big", "small"])
def test_rows_of_one_id_stay_in_one_split(write, ids, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = import_features(write(ids), out="set")
    by_split = [found.ids(split) for split in found.splits]
    assert sorted(one for names in by_split for one in names) == sorted(map(str, ids.tolist()))
    assert sum(len(set(names)) for names in by_split) == 30
    assert found.manifest.imported.not_read == []


def test_numbers_that_stand_in_two_splits_are_told_as_text_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = {"train_x": ROWS.features, "train_y": ROWS.labels, "test_x": OTHERS.features, "test_y": OTHERS.labels}
    ids = {"train_id": np.arange(60), "test_id": np.arange(40)}
    np.savez("numbers.npz", **arrays, **ids)
    np.savez("text.npz", **arrays, **{name: one.astype(str) for name, one in ids.items()})
    numbers, text = (import_features(f"{name}.npz", out=name).manifest.warnings for name in ("numbers", "text"))
    assert numbers == text
    assert any(one.code == "shared-ids" for one in numbers)


def test_ids_that_gaps_made_floats_of_are_whole_numbers(tmp_path, monkeypatch):
    """As pandas writes a column that once had gaps: the same ids as without them."""
    monkeypatch.chdir(tmp_path)
    labels = {"train_y": ROWS.labels, "test_y": OTHERS.labels}
    np.savez(
        "a.npz",
        train_x=ROWS.features,
        test_x=OTHERS.features,
        train_id=np.arange(60.0),
        test_id=np.arange(60, 100),
        **labels,
    )
    found = import_features("a.npz", out="set")
    assert sorted(map(int, (one for split in found.splits for one in found.ids(split)))) == list(range(100))
    check_aligned(found)


@pytest.mark.parametrize("column", [[1, None, *range(58)], [1.0, float("nan"), *map(float, range(58))]])
def test_a_gap_in_numbers_is_told_as_one_in_text(column, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError,
        match=r"a.parquet: id is missing \(null or NaN\) in row 1, expected an id in every row; write one there",
    ):
        import_features(write_parquet(column), out="set")


@pytest.mark.parametrize(
    "ids",
    [np.arange(60) + 0.5, np.full(60, np.nan), np.arange(59), np.ones((60, 7), int)],
    ids=["fractions", "nan", "fewer", "words"],
)
def test_numbers_called_ids_that_are_none_are_not_read(ids, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = import_features(write_npz(ids), out="set")
    assert found.manifest.imported.not_read == ["ids"]
    assert found.ids("val")[0].startswith("a.npz/")


def test_groups_of_numbers_with_gaps_are_those_without(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"x": ROWS.features.tolist(), "label": ROWS.labels % 2}
    pq.write_table(pa.table(rows | {"face": np.arange(60) % 20}), "a.parquet")
    pq.write_table(pa.table(rows | {"face": [*range(20), *range(20), *[None] * 20]}), "b.parquet")
    found = import_features(["a.parquet", "b.parquet"], out="set", group_column="face")
    faces = {f"a.parquet/{row}": row % 20 for row in range(60)} | {f"b.parquet/{row}": row % 20 for row in range(40)}
    by_split = [{faces[name] for name in found.ids(split) if name in faces} for split in found.splits]
    assert sum(map(len, by_split)) == len(set.union(*by_split)) == 20


def test_ids_are_no_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", x=ROWS.features, id=np.arange(60), kind=ROWS.labels)
    assert import_features("a.npz", out="set").class_names == [str(label) for label in range(CLASSES)]
    np.savez("b.npz", x=ROWS.features, id=np.arange(60) % 4)
    with pytest.raises(InputError, match=r"b.npz: has no labels .*, others are .*id int64 \(60\): name them with"):
        import_features("b.npz", out="other")
    assert import_features("b.npz", out="other", label_column="id").class_names == list("0123")

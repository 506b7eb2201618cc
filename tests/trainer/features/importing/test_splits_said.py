"""Which split a row is in, by whatever says it: what stands before a name, a column, a folder's name."""

from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, Run, import_features

from .planted import check_aligned, planted

ROWS = planted(120)
TRAIN, TEST = planted(90), planted(30, first=90)
SAID = np.array(["train", "train", "test", "train", "validation", "train"] * 20)


def numbers(found, split):
    return sorted(found.arrays(split)[0][:, 0].int().tolist())


def write_folder(folder, rows):
    folder.mkdir(parents=True)
    np.save(folder / "features.npy", rows.features)
    np.save(folder / "labels.npy", rows.labels)


@pytest.mark.parametrize("names", [("train", "test"), ("emb_train", "emb_test"), ("Train/", "Test/")])
def test_folders_that_are_named_one_by_one(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in zip(names, (TRAIN, TEST), strict=True):
        write_folder(Path("tv", name), rows)
    found = import_features([f"tv/{name}" for name in names], out="set")
    assert numbers(found, "test") == list(range(90, 120))
    assert check_aligned(found) == set(range(120))
    assert found.manifest.splits == import_features("tv", out="whole").manifest.splits


def test_a_folder_of_two_splits_is_not_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_folder(Path("tv/train"), TRAIN)
    write_folder(Path("tv/test"), TEST)
    with pytest.raises(InputError, match="train=tv: holds 2 splits of its own; name it without train="):
        import_features("train=tv", out="set")


def test_files_of_one_name_in_folders_of_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_folder(Path("train"), TRAIN)
    write_folder(Path("test"), TEST)
    found = import_features(["train/features.npy", "test/features.npy"], out="set")
    assert numbers(found, "test") == list(range(90, 120))


def test_folders_of_datasets_that_are_named_one_by_one(tmp_path):
    for split, rows in (("train", TRAIN), ("validation", TEST)):
        data = {"embedding": rows.features.tolist(), "label": rows.labels}
        datasets.Dataset.from_dict(data).save_to_disk(str(tmp_path / split))
    found = import_features([tmp_path / "train", tmp_path / "validation"], out=tmp_path / "set")
    assert numbers(found, "val") == list(range(90, 120))


def test_a_word_in_the_name_of_the_only_folder_is_no_split(tmp_path):
    write_folder(tmp_path / "test of clip", ROWS)
    found = import_features(tmp_path / "test of clip", out=tmp_path / "set")
    assert found.manifest.split_rule.startswith("val and test carved from train")
    (tmp_path / "test of clip").rename(tmp_path / "test")
    with pytest.raises(InputError, match="no train split, found test; add one: give train=FILE"):
        import_features(tmp_path / "test", out=tmp_path / "other")
    assert import_features(f"train={tmp_path / 'test'}", out=tmp_path / "other").fingerprint == found.fingerprint


def write_npz(values):
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels, split=values)
    return "a.npz"


def write_parquet(values):
    columns = {"x": ROWS.features.tolist(), "y": ROWS.labels, "split": values}
    pq.write_table(pa.table(columns), "a.parquet", row_group_size=7)
    return "a.parquet"


def write_categories(values):
    columns = {"x": ROWS.features.tolist(), "y": ROWS.labels, "Split": pa.array(values).dictionary_encode()}
    pq.write_table(pa.table(columns), "a.parquet")
    return "a.parquet"


def write_torch(values):
    torch.save({"x": torch.tensor(ROWS.features), "y": torch.tensor(ROWS.labels), "splits": values.tolist()}, "a.pt")
    return "a.pt"


def write_npy_with_metadata(values):
    np.save("img_emb_0.npy", ROWS.features)
    pq.write_table(pa.table({"label": ROWS.labels, "split": values}), "metadata_0.parquet")
    return "img_emb_0.npy"


@pytest.mark.parametrize("write", [write_npz, write_parquet, write_categories, write_torch, write_npy_with_metadata])
def test_a_column_of_splits(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = import_features(write(SAID), out="set")
    for split, own in (("train", "train"), ("val", "validation"), ("test", "test")):
        assert numbers(found, split) == np.flatnonzero(own == SAID).tolist()
    check_aligned(found)
    (name,) = {columns["splits"] for columns in found.manifest.imported.columns.values()}
    assert found.manifest.split_rule == f"split by column {name!r}; the source's own train, val and test"
    assert FeatureSet.load("set").splits == ["train", "val", "test"]


def test_a_column_of_text_beside_a_column_of_splits_is_the_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", x=ROWS.features, species=ROWS.labels.astype(str), split=SAID)
    assert check_aligned(import_features("a.npz", out="set")) == set(range(120))


def test_splits_that_the_column_lacks_are_carved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = import_features(write_npz(np.where(SAID == "test", "test", "train")), out="set")
    assert numbers(found, "test") == np.flatnonzero(SAID == "test").tolist()
    assert found.manifest.split_rule.startswith("split by column 'split'; val carved from train: 10.00% of each")
    made = CliRunner().invoke(app, ["import", "a.npz", "--out", "shown"])
    assert "split by column 'split'; val carved" in made.output.replace("\n", " ")


def test_a_column_of_other_values_is_refused_and_a_person_wins_over_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write_npz(np.where(SAID == "test", "holdout", SAID))
    with pytest.raises(
        InputError, match=r"a.npz: split is 'holdout' in row 2, expected train, val or test; .*train=FILE"
    ):
        import_features(file, out="set")
    found = import_features(f"train={file}", out="set")
    assert found.manifest.split_rule.startswith("val and test carved from train")
    assert found.manifest.imported.not_read == ["split"]
    assert import_features(file, out="other", label_column="split").class_names == ["holdout", "train", "validation"]


def test_a_column_and_a_name_that_disagree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(write_npz(SAID)).rename("train.npz")
    with pytest.raises(
        InputError, match=r"train.npz: split is 'test' in row 2, but the name of the file or folder says train"
    ):
        import_features("train.npz", out="set")


def test_a_file_with_and_one_without_a_column_of_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write_npz(SAID)
    np.savez("b.npz", x=ROWS.features, y=ROWS.labels)
    with pytest.raises(InputError, match=r"b.npz: has no split, but other files have; name each by its split"):
        import_features([file, "b.npz"], out="set")


def test_a_split_of_no_known_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels)
    with pytest.raises(
        InputError, match=r"foo=a.npz: split 'foo' is not known; expected train=a.npz, or val= or test="
    ):
        import_features("foo=a.npz", out="set")
    Path("a.npz").rename("lr=0.1.npz")
    assert check_aligned(import_features("lr=0.1.npz", out="set")) == set(range(120))


def test_what_is_not_read_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"x": ROWS.features.tolist(), "y": ROWS.labels, "group": ROWS.ids, "score": ROWS.features[:, 1]}
    pq.write_table(pa.table(columns), "a.parquet")
    halves = {"train_x": TRAIN.features, "train_y": TRAIN.labels, "test_x": TEST.features, "test_y": TEST.labels}
    save_file({key: torch.tensor(value) for key, value in {**halves, "mean": np.zeros(6)}.items()}, "b.safetensors")
    grouped = ["import", "a.parquet", "--out", "other", "--label-column", "y", "--group-column", "group"]
    for file, names, options in (
        ("a.parquet", "not read: group, score", ["--label-column", "y"]),
        ("a.parquet", "not read: score", ["--label-column", "y", "--group-column", "group"]),
        ("b.safetensors", "not read: mean", []),
    ):
        made = CliRunner().invoke(app, ["import", file, "--out", "set", "--overwrite", *options])
        assert made.output.splitlines()[-1] == names
        assert made.output.splitlines()[-2].startswith("read: features ")
    assert "read: features x; labels y; groups group\n" in CliRunner().invoke(app, grouped).output


@pytest.mark.parametrize(("names", "splits"), [(("_embeddings", "_labels"), "test"), (("_x", "_y"), "val")])
def test_val_keys_of_the_papers_files_are_the_test_split_and_that_is_said(names, splits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = names
    halves = {f"train{x}": TRAIN.features, f"train{y}": TRAIN.labels, f"val{x}": TEST.features, f"val{y}": TEST.labels}
    torch.save({key: torch.tensor(value) for key, value in halves.items()}, "a.p")
    made = CliRunner().invoke(app, ["import", "a.p", "--out", "set"])
    assert numbers(FeatureSet.load("set"), splits) == list(range(90, 120))
    warning = (
        "warning (val-as-test): a.p: val_embeddings and val_labels are the test split, as in the files of Petersen"
    )
    assert (warning in made.output) == (splits == "test")
    assert f"read: features train{x}, val{x}; labels train{y}, val{y}" in made.output


def test_commands_take_a_file_as_python_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write_npz(SAID)
    result = CliRunner().invoke(app, ["train", file, "--out", "run", "--epochs", "1", "--device", "cpu"])
    assert result.exit_code == 4  # one epoch is no better than guesses here
    assert Run.load("run").class_names
    shown = CliRunner().invoke(app, ["inspect", file])
    assert "split by column 'split'" in shown.output.replace("\n", " ")

"""Every kind of file gives the same rows: what was planted in it."""

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from headsmith.trainer import FeatureSet, import_features
from headsmith.trainer.features.importing.datasets_folder import read_dataset

from .planted import check_aligned, planted

TRAIN, TEST = planted(60), planted(20, first=60)


def halves(prefix="", test="test", kind=torch.float32):
    return {
        f"{prefix}train_embeddings": torch.tensor(TRAIN.features).to(kind),
        f"{prefix}train_labels": torch.tensor(TRAIN.labels),
        f"{prefix}{test}_embeddings": torch.tensor(TEST.features).to(kind),
        f"{prefix}{test}_labels": torch.tensor(TEST.labels),
    }


def table(rows, **more):
    return pa.table({"id": rows.ids, "embedding": rows.features.tolist(), "label": rows.labels, **more})


def write_pt_nested(folder):
    both = {"train": TRAIN, "test": TEST}
    torch.save({split: {"x": torch.tensor(d.features), "y": d.labels.tolist()} for split, d in both.items()}, "a.pt")
    return ["a.pt"]


def write_npz(folder):
    np.savez("a.npz", X_train=TRAIN.features, y_train=TRAIN.labels, X_test=TEST.features, y_test=TEST.labels)
    return ["a.npz"]


def write_npz_of_columns_in_memory_order(folder):
    np.savez_compressed("train.npz", x=np.asfortranarray(TRAIN.features), y=TRAIN.labels)
    np.savez_compressed("test.npz", x=TEST.features.astype(np.float64), y=TEST.labels.astype(np.uint8))
    return ["train.npz", "test.npz"]


def write_npy(folder):
    for split, rows in (("train", TRAIN), ("test", TEST)):
        np.save(f"{split}_features.npy", rows.features)
        np.save(f"{split}_labels.npy", rows.labels.astype(np.int16))
    return sorted(str(path) for path in folder.glob("*.npy"))


def write_npy_underscore_labels(folder):
    for split, rows in (("train", TRAIN), ("test", TEST)):
        np.save(f"{split}.npy", rows.features)
        np.save(f"{split}_labels.npy", rows.labels)
    return ["train=train.npy", "test=test.npy"]


def write_clip_retrieval(folder):
    for split, rows, first in (("train", TRAIN, 0), ("test", TEST, 0)):
        for place in ("img_emb", "metadata"):
            (folder / split / place).mkdir(parents=True, exist_ok=True)
        for shard in range(12 if split == "train" else 2):
            part = slice(first, first + (5 if split == "train" else 10))
            np.save(folder / split / "img_emb" / f"img_emb_{shard}.npy", rows.features[part].astype(np.float16))
            meta = {"key": rows.ids[part], "caption": rows.ids[part], "label": rows.labels[part]}
            pq.write_table(pa.table(meta), folder / split / "metadata" / f"metadata_{shard}.parquet")
            first = part.stop
    return [str(folder)]


def write_safetensors(folder):
    save_file({key: value.contiguous() for key, value in halves().items()}, "a.safetensors")
    return ["a.safetensors"]


def write_parquet(folder):
    pq.write_table(table(TRAIN), "train-0.parquet", row_group_size=7)
    pq.write_table(table(TEST, caption=TEST.ids), "test-0.parquet")
    return ["train-0.parquet", "test-0.parquet"]


def write_arrow(folder):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(TRAIN.features.ravel()), TRAIN.features.shape[1])
    rows = pa.table({"id": TRAIN.ids, "features": fixed, "label": TRAIN.labels})
    with pa.OSFile("train.arrow", "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=13)
    pyarrow.feather.write_feather(table(TEST), "test.feather")
    return ["train.arrow", "test.feather"]


def write_datasets(folder):
    both = {"train": datasets.Dataset(table(TRAIN)), "validation": datasets.Dataset(table(TEST)).shuffle(seed=1)}
    datasets.DatasetDict(both).save_to_disk(str(folder / "saved"))
    return [str(folder / "saved")]


def write_data_files(folder):
    (folder / "hub").mkdir()
    pq.write_table(table(TRAIN), "hub/train.parquet")
    pq.write_table(table(TEST), "hub/test.parquet")
    return [str(folder / "hub")]


WRITERS = [value for name, value in globals().items() if name.startswith("write_")]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.removeprefix("write_"))
def test_every_kind_of_file(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path)
    found = import_features(files, out=tmp_path / "set")
    own_ids = write in (write_parquet, write_arrow, write_datasets, write_data_files)
    assert check_aligned(found, own_ids=own_ids) == set(range(80))
    held_out = "val" if write is write_datasets else "test"
    assert set(found.arrays(held_out)[0][:, 0].tolist()) == set(range(60, 80))
    assert found.manifest.dtype == ("float16" if write is write_clip_retrieval else "float32")
    assert found.class_names == ["0", "1", "2", "3", "4"]
    assert FeatureSet.load(found.path).fingerprint == found.fingerprint
    if not own_ids:
        assert len({name for split in found.splits for name in found.ids(split)}) == 80


@pytest.mark.parametrize(
    ("prefix", "test", "kind"),
    [
        ("", "test", torch.float32),
        ("", "val", torch.float16),
        ("imagenet21k_", "test", torch.float16),
        ("imagenet21k_", "val", torch.float32),
    ],
)
def test_the_papers_dictionaries_as_they_are_published(prefix, test, kind, tmp_path):
    torch.save(halves(prefix, test, kind), tmp_path / "embeddings.p")
    found = import_features([tmp_path / "embeddings.p"], out=tmp_path / "set")
    assert check_aligned(found) == set(range(80))
    assert found.manifest.splits == {"train": 55, "val": 5, "test": 20}
    assert found.manifest.split_rule == "val carved from train: 10.00% of each class, at least 1, drawn with seed 0"
    assert found.arrays("test")[0].dtype == kind
    assert torch.equal(found.arrays("test")[0], torch.tensor(TEST.features).to(kind))
    assert found.ids("test")[0] == f"embeddings.p/{test}/0"
    assert found.manifest.imported.columns[f"{tmp_path / 'embeddings.p'}: train"] == {
        "features": f"{prefix}train_embeddings",
        "labels": f"{prefix}train_labels",
    }


def test_dictionaries_of_both_image_nets_are_told_apart_by_name(tmp_path):
    torch.save(halves() | halves("imagenet21k_"), tmp_path / "both.p")
    names = {"feature_column": "imagenet21k_embeddings", "label_column": "imagenet21k_labels"}
    assert check_aligned(import_features([tmp_path / "both.p"], out=tmp_path / "set", **names)) == set(range(80))


def test_files_of_torch_before_1_6(tmp_path):
    torch.save(halves(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert check_aligned(import_features([tmp_path / "old.pt"], out=tmp_path / "set")) == set(range(80))


def test_bfloat16_becomes_float32(tmp_path):
    few = planted(40)
    save_file({"features": torch.tensor(few.features).bfloat16(), "labels": torch.tensor(few.labels)}, "b.safetensors")
    found = import_features(["b.safetensors"], out=tmp_path / "set")
    assert found.arrays("train")[0].dtype == torch.float32
    assert check_aligned(found) == set(range(40))


def test_names_of_a_class_label_are_kept(tmp_path):
    names = ["zebra", "ant", "yak", "bee", "cat"]
    data = datasets.Dataset(table(TRAIN)).cast_column("label", datasets.ClassLabel(names=names))
    data.save_to_disk(str(tmp_path / "saved"))
    found = import_features([tmp_path / "saved"], out=tmp_path / "set")
    assert found.class_names == names
    rows, labels = found.arrays("train")
    assert (rows[:, 0].long() % 5 == labels).all()


def test_a_feature_set_opens_with_datasets_and_imports_again_as_itself(tmp_path):
    torch.save(halves(), tmp_path / "a.p")
    first = import_features([tmp_path / "a.p"], out=tmp_path / "first")
    again = import_features([first.path], out=tmp_path / "again")
    assert datasets.load_from_disk(str(first.path))["val"]["id"][:] == first.ids("val") == again.ids("val")
    assert again.manifest.request.features == first.manifest.request.features
    assert again.manifest.split_rule == "the source's own train, val and test"


def test_a_file_is_loaded_without_a_folder(tmp_path):
    torch.save(halves(), tmp_path / "a.p")
    assert check_aligned(FeatureSet.load(tmp_path / "a.p")) == set(range(80))


def test_arrays_and_tensors(tmp_path):
    every = planted(80)
    names = np.array(["nil", "one", "two", "three", "four"])[every.labels]
    found = FeatureSet.from_arrays(torch.tensor(every.features).half(), names, ids=every.ids, out=tmp_path / "set")
    assert found.class_names == ["four", "nil", "one", "three", "two"]
    rows, labels = found.arrays("train")
    assert [found.class_names[label] for label in labels] == names[rows[:, 0].long()].tolist()
    assert found.ids("train") == [f"r{int(row)}" for row in rows[:, 0]]
    by_split = {"train": TRAIN.features, "test": torch.tensor(TEST.features)}
    kept = FeatureSet.from_arrays(by_split, {"train": TRAIN.labels, "test": torch.tensor(TEST.labels)})
    assert check_aligned(kept) == set(range(80))
    assert kept.manifest.splits == {"train": 55, "val": 5, "test": 20}


def test_class_names_that_labels_count_from_zero(tmp_path):
    every = planted(80)
    np.savez("a.npz", x=every.features, y=every.labels)
    (tmp_path / "names.txt").write_text("a\nb\nc\nd\ne\nnever seen\n")
    found = import_features(["a.npz"], out=tmp_path / "set", class_names=tmp_path / "names.txt")
    assert found.class_names == ["a", "b", "c", "d", "e", "never seen"]


def test_a_data_set_by_name_as_datasets_loads_it(tmp_path):
    """The code of hub names, on data files that `datasets` loads without the hub."""
    pq.write_table(table(TRAIN), tmp_path / "train.parquet")
    pq.write_table(table(TEST), tmp_path / "test.parquet")
    train, test = sorted(read_dataset(str(tmp_path)), key=lambda found: found.split, reverse=True)
    assert (train.split, test.split) == ("train", "test")
    columns = {column.name: column for column in train.columns}
    assert columns["embedding"].shape == TRAIN.features.shape
    assert (np.concatenate(list(columns["embedding"].blocks())) == TRAIN.features).all()


def test_groups_and_ids_from_columns(tmp_path):
    faces = [f"face {number % 7}" for number in range(120)]
    for shard in range(3):
        part = slice(40 * shard, 40 * shard + 40)
        rows = planted(40, first=40 * shard)
        pq.write_table(table(rows, face=faces[part], key=list(range(120))[part]), tmp_path / f"part-{shard}.parquet")
    found = import_features([tmp_path], out=tmp_path / "set", group_column="face", id_column="key")
    assert check_aligned(found) == set(range(120))
    groups = [{faces[int(name)] for name in found.ids(split)} for split in found.splits]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 7
    assert "10.00% of the groups" in found.manifest.split_rule


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_either_byte_order(tmp_path, monkeypatch, order, kind):
    monkeypatch.chdir(tmp_path)
    x, y, ids = (
        TRAIN.features.astype(order + kind),
        TRAIN.labels.astype(order + "i4"),
        np.array(TRAIN.ids, order + "U3"),
    )
    np.save("a.npy", x)
    np.save("a_labels.npy", y)
    np.savez("a.npz", x=x, y=y, id=ids)
    found = [import_features("a.npy", out="npy"), import_features("a.npz", out="npz"), FeatureSet.from_arrays(x, y)]
    expected = FeatureSet.from_arrays(TRAIN.features.astype(kind), TRAIN.labels)
    for one in found:
        assert one.manifest.dtype == expected.manifest.dtype == ("float16" if kind == "f2" else "float32")
        assert check_aligned(one, own_ids=one is found[1]) == set(range(60))
        for split in one.splits:
            assert torch.equal(one.arrays(split)[0], expected.arrays(split)[0])

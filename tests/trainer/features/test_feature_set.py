import json
import mmap
import pickletools
import re
import shutil
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer.features import FeatureSet, extract, inspect_features
from headsmith.trainer.features.split_checksums import rows_sha256


@pytest.fixture(scope="module")
def original(image_folder, tiny_backbone, tmp_path_factory):
    folder = image_folder({"cat": 8, "dog": 7})
    return extract(folder, out=tmp_path_factory.mktemp("out") / "set", **tiny_backbone._asdict())


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "set")
    return tmp_path / "set"


def data_file(folder: Path, split="train") -> Path:
    (path,) = (folder / split).glob("*.arrow")
    return path


def rewrite(folder: Path, split="train", **columns):
    """Replace columns of a split, and let the manifest agree."""
    table = pa.ipc.open_stream(data_file(folder, split).read_bytes()).read_all()
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        kind = table.schema.field(name)
        table = table.set_column(place, kind, pa.array(values, kind.type))
    with pa.OSFile(str(data_file(folder, split)), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["rows_sha256"][split] = rows_sha256(table["id"].to_pylist(), table["label"].to_numpy())
    (folder / "manifest.json").write_text(json.dumps(manifest))


def change_manifest(folder: Path, **values):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | values))


def test_features_are_mapped_and_writing_leaves_the_file_alone(copy):
    before = data_file(copy).read_bytes()
    features, labels = FeatureSet.load(copy).arrays("train")
    assert features.shape == (11, 96)
    assert labels.dtype == torch.int64
    mapped = FeatureSet.load(copy).columns["train"].features.base.base.obj
    assert isinstance(mapped, mmap.mmap)
    features.fill_(0)
    assert data_file(copy).read_bytes() == before
    assert FeatureSet.load(copy).arrays("train")[0].any()


def test_files_are_hardly_larger_than_what_they_hold(original):
    for split in original.splits:
        features, labels = original.arrays(split)
        ids = "".join(original.ids(split))
        payload = features.nbytes + labels.nbytes + len(ids) + 4 * len(labels)
        assert data_file(original.path, split).stat().st_size < 1.05 * payload + 2048  # schema and framing


def test_no_pickle_is_written(original):
    for path in original.path.rglob("*"):
        if path.is_file():
            with pytest.raises(ValueError, match=r"opcode|exhausted"):
                list(pickletools.genops(path.read_bytes()))


def test_a_set_that_datasets_saved_again_opens(original, tmp_path):
    data = datasets.load_from_disk(str(original.path))
    data["train"] = datasets.concatenate_datasets([data["train"].select(range(5)), data["train"].select(range(5, 11))])
    data.save_to_disk(str(tmp_path / "set"), num_shards={"train": 3, "val": 1, "test": 1})
    shutil.copy(original.path / "manifest.json", tmp_path / "set")
    again = FeatureSet.load(tmp_path / "set")
    assert again.ids("train") == original.ids("train")
    assert torch.equal(again.arrays("train")[0], original.arrays("train")[0])


@pytest.mark.parametrize(("value", "dtype"), [(np.nan, "float16"), (np.inf, "float16"), (-np.inf, "float16")])
def test_nan_and_infinite_features_are_refused(copy, original, value, dtype):
    rows = original.arrays("val")[0].numpy().astype(dtype).copy()
    rows[1, 7] = value
    rewrite(copy, "val", features=list(rows))
    name = re.escape(original.ids("val")[1])
    with pytest.raises(InputError, match=rf"set: val: 1 of 2 rows have NaN or infinite features, first {name}"):
        FeatureSet.load(copy)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1, 2], r"from 1 to 2, expected 0 to 1 .* first wrong one is 2 in row 1"), ([-1, 0], "is -1 in row 0")],
)
def test_labels_outside_of_the_classes_are_refused(copy, labels, message):
    rewrite(copy, "val", label=labels)
    with pytest.raises(InputError, match=message):
        FeatureSet.load(copy)


def test_rows_that_were_swapped_are_noticed(copy, original):
    rewrite(copy, "val", id=original.ids("val")[::-1])
    change_manifest(copy, rows_sha256=original.manifest.rows_sha256)
    with pytest.raises(InputError, match="val: ids and labels are not those that were written"):
        FeatureSet.load(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest["rows_sha256"].pop("val"), "val: ids and labels are not those that were written"),
        (lambda manifest: manifest["rows_sha256"].pop("train"), r"rows_sha256: found \['val', 'test'\]"),
        (lambda manifest: manifest.update(request={}), "request.backbone: missing"),
        (lambda manifest: manifest["request"].pop("source"), "fingerprint: is not that of the request beside it"),
        (lambda manifest: manifest.pop("request"), "request: missing"),
        (lambda manifest: manifest.pop("fingerprint"), "fingerprint: missing"),
        (lambda manifest: manifest.update(pictures_sha256=None), "train: the hashes of the pictures are not those"),
    ],
)
def test_who_takes_a_hash_away_does_not_switch_off_its_check(copy, change, message):
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=f"{message}.*make it again"):
        FeatureSet.load(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "manifest.json: format is 'other', expected 'headsmith.features'"),
        ({"format_version": 2}, "format_version is 2, this headsmith reads 1"),
        ({"feature_dim": 7}, r"features \(11, 96\), the manifest says \(11, 7\)"),
        ({"splits": {"train": 11, "holdout": 2}}, r"splits: found \['train', 'holdout'\], expected train, val or test"),
    ],
)
def test_a_manifest_that_does_not_fit(copy, change, message):
    change_manifest(copy, **change)
    with pytest.raises(InputError, match=message):
        FeatureSet.load(copy)


def test_a_missing_manifest_key(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["class_names"], manifest["dtype"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="manifest.json: class_names: missing, expected a list; make it again"):
        FeatureSet.load(copy)


def test_missing_and_damaged_parts(copy, tmp_path):
    with pytest.raises(InputError, match="nothing: no such file or folder; make a feature set with"):
        FeatureSet.load(tmp_path / "nothing")
    content = data_file(copy).read_bytes()
    for kept in (0, 10, 400, len(content) - 900):
        data_file(copy).write_bytes(content[:kept])
        with pytest.raises(InputError, match="train"):
            FeatureSet.load(copy)
    data_file(copy).unlink()
    with pytest.raises(InputError, match=r"arrow: not found"):
        FeatureSet.load(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"is not a feature set, it has no manifest.json"):
        FeatureSet.load(copy)


def test_columns_of_another_type(copy):
    table = pa.table({"id": ["a"], "label": [0], "features": [[1.0, 2.0]]})
    with pa.OSFile(str(data_file(copy)), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="columns are .*list<.*expected id string, label int64, features fixed-size"):
        FeatureSet.load(copy)


def test_an_unknown_split(original):
    with pytest.raises(InputError, match=r"has no split 'dev', found \['train', 'val', 'test'\]"):
        original.arrays("dev")


@pytest.mark.parametrize("kind", ["extracted", "imported"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("class_names", ["dog", "cat"]),
        ("class_names", ["cat", "cat"]),
        ("class_names", ["cat", "a\n\x1b[2J"]),
        ("class_names", ["cat"]),
        ("class_names", ["cat", "dog", "emu"]),
        ("dtype", "float64"),
        ("dtype", "int8"),
        ("fingerprint", "0" * 64),
    ],
)
def test_a_manifest_that_was_edited_is_refused_and_inspect_says_why(original, tmp_path, kind, field, value):
    folder = tmp_path / "set"
    if kind == "extracted":
        shutil.copytree(original.path, folder)
    else:
        labels = np.repeat(["cat", "dog"], 20)
        FeatureSet.from_arrays(np.random.default_rng(0).normal(size=(40, 8)), labels, out=folder)
    change_manifest(folder, **{field: value})
    with pytest.raises(InputError, match=rf"manifest\.json: {field}: .*make it again") as error:
        FeatureSet.load(folder)
    assert "\n" not in str(error.value)
    problems = inspect_features(folder).problems
    assert any(str(problem).startswith(f"edited: manifest.json: {field}: ") for problem in problems)
    assert not any("features are not those" in problem.message for problem in problems)


def test_weights_of_another_backbone_are_refused(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    change_manifest(copy, backbone=manifest["backbone"] | {"weights_sha256": "0" * 64})
    with pytest.raises(InputError, match=r"manifest\.json: weights: is not what was written"):
        FeatureSet.load(copy)


@pytest.mark.parametrize("junk", [b"\0" * 1000, b"x"])
def test_bytes_after_the_rows_are_refused(copy, junk):
    with data_file(copy).open("ab") as file:
        file.write(junk)
    with pytest.raises(InputError, match=rf"damaged \({len(junk):,} bytes follow its end\)"):
        FeatureSet.load(copy)

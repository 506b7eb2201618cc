"""Files that cannot be imported: one line that says which, what was found, what was expected, and what to do."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from safetensors.numpy import save_file
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, import_features

from .refusals import ROWS, refused


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickled_object_is_never_run(zipped):
    torch.save({"x": torch.zeros(4, 2), "y": Bomb()}, "a.pt", _use_new_zipfile_serialization=zipped)
    refused(r"a.pt: holds pickled objects .* could run code; where you trust it, write it again as tensors", "a.pt")
    assert not Path("exploded").exists()


def test_labels_as_numpy_in_a_torch_file_are_refused_with_the_safe_way():
    torch.save({"x": torch.tensor(ROWS.features), "y": ROWS.labels}, "a.p")
    refused(r"\(numpy arrays count\).*torch.save\(\{'features': torch.as_tensor\(x\).*numpy.savez.*safetensors", "a.p")


def test_pickles_and_arrays_of_objects_are_refused():
    Path("a.pkl").write_bytes(pickle.dumps({"x": 1}))
    refused("a.pkl: is a pickle, which could run code", "a.pkl")
    Path("a.p").write_bytes(pickle.dumps({"x": 1}))
    refused("a.p: holds pickled objects|a.p: is damaged or was not written by torch.save", "a.p")
    np.save("x.npy", ROWS.features)
    np.save("x_labels.npy", np.array([Bomb()] * 40, object), allow_pickle=True)
    refused("x_labels.npy: holds pickled Python objects", "x.npy")
    np.savez("o.npz", x=ROWS.features, y=np.array([Bomb()] * 40, object))
    refused("o.npz: y.npy: holds pickled Python objects", "o.npz")
    assert not Path("exploded").exists()


def write(name):
    if name.endswith(".npy"):
        np.save("x_labels.npy", ROWS.labels)
        np.save(name, ROWS.features)
    elif name.endswith(".npz"):
        np.savez(name, x=ROWS.features, y=ROWS.labels)
    elif name.endswith(".pt"):
        torch.save({"x": torch.tensor(ROWS.features), "y": torch.tensor(ROWS.labels)}, name)
    elif name.endswith(".safetensors"):
        save_file({"x": ROWS.features, "y": ROWS.labels}, name)
    elif name.endswith(".parquet"):
        pq.write_table(pa.table({"x": ROWS.features.tolist(), "y": ROWS.labels}), name)
    else:
        table = pa.table({"x": ROWS.features.tolist(), "y": ROWS.labels})
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pt", "x.safetensors", "x.parquet", "x.arrow"])
@pytest.mark.parametrize("kept", [0, 7, 100, -200])
def test_truncated_files(name, kept):
    write(name)
    content = Path(name).read_bytes()
    Path(name).write_bytes(content[:kept])
    refused(rf"{name}: .*(truncated|damaged|holds no).*(get it again|torch.save|name them|nothing else)", name)


def test_a_large_torch_file_without_its_end():
    torch.save({"x": torch.zeros(1500, 64), "y": torch.zeros(1500)}, "x.pt")
    Path("x.pt").write_bytes(Path("x.pt").read_bytes()[:5000])
    refused(r"x.pt: damaged or .*end record; truncated\?\); get it again", "x.pt")


def test_a_flipped_byte_inside_an_archive():
    np.savez("x.npz", x=np.zeros((9000, 6)), y=np.arange(9000) % 3)
    content = bytearray(Path("x.npz").read_bytes())
    content[200_000] ^= 1
    Path("x.npz").write_bytes(content)
    refused(r"x.npz: x.npy is damaged \(Bad CRC-32", "x.npz")


def test_what_is_not_there():
    refused("gone.npz: no such file or folder, and no OWNER/NAME of a data set on the hub", "gone.npz")
    refused("^files: none given")
    Path("x.xlsx").write_text("a,b")
    refused(r"x.xlsx: files ending in '.xlsx' are not read; expected .p, .pt", "x.xlsx")
    Path("x.safetensor").write_text("a,b")
    refused(r"'.safetensor' are not read; did you mean .safetensors", "x.safetensor")
    Path("empty").mkdir()
    refused("empty: holds no file with features, expected some of .p, .pt", "empty")


def test_columns_that_are_not_clear_are_asked_for_with_the_candidates():
    np.savez("a.npz", clip=ROWS.features, dino=ROWS.features, fine=ROWS.labels, coarse=ROWS.labels)
    refused(r"several columns that may be features: clip float32 \(40, 6\), dino .*`feature_column`", "a.npz")
    refused(r"labels: fine int64 \(40\), coarse .*`label_column`", "a.npz", feature_column="clip")
    refused(r"`feature_column` 'vit' found, expected one of clip, dino", "a.npz", feature_column="vit")
    names = {"feature_column": "dino", "label_column": "coarse"}
    refused("`group_column` 'place' found", "a.npz", **names, group_column="place")
    found = import_features(["a.npz"], out="set", **names)
    assert found.manifest.imported.columns == {"a.npz": {"features": "dino", "labels": "coarse"}}


def test_columns_that_are_missing_or_of_another_shape():
    np.savez("a.npz", y=ROWS.labels)
    refused(
        r"has no features \(expected a matrix \(N, D\) of floats, .*\), others are y int64 \(40\): write the features",
        "a.npz",
    )
    np.savez("b.npz", x=ROWS.features)
    refused(r"has no labels \(expected one whole number or text a row\), it holds nothing else", "b.npz")
    np.savez("c.npz", x=np.zeros((40, 3, 2), np.float32), y=ROWS.labels)
    refused(
        r"x float32 \(40, 3, 2\) has 3 dimensions, expected a matrix \(N, D\); flatten", "c.npz", feature_column="x"
    )
    np.savez("d.npz", x=ROWS.features, y=np.eye(40))
    refused(r"y float64 \(40, 40\) has not one value a row", "d.npz", feature_column="x", label_column="y")
    torch.save([1, 2], "e.pt")
    refused(r"e.pt: has no features", "e.pt")
    torch.save({"n": 3}, "f.pt")
    refused(r"f.pt: holds dict without tensors, expected features and labels", "f.pt")


def test_rows_and_labels_of_different_length():
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels[:-1])
    refused("a.npz: x has 40 rows and y 39, expected one each; nothing says which belong together", "a.npz")


def test_lists_of_different_length_or_missing():
    lists = ROWS.features.tolist()
    pq.write_table(pa.table({"x": [*lists[:33], [1.0], *lists[34:]], "y": ROWS.labels}), "a.parquet", row_group_size=9)
    refused("a.parquet: x has 1 value in row 33, expected 6 as in row 0", "a.parquet")
    pq.write_table(pa.table({"x": [*lists[:33], None, *lists[34:]], "y": ROWS.labels}), "b.parquet")
    refused("b.parquet: x has nothing in row 33, expected 6", "b.parquet")


def test_other_widths_in_other_files_and_splits():
    np.savez("a.npz", train_x=ROWS.features, train_y=ROWS.labels, test_x=ROWS.features[:, :4], test_y=ROWS.labels)
    refused("a.npz: test: features have D = 4, but 6 in a.npz: train; expected the same backbone in all", "a.npz")


def test_files_with_and_without_a_split():
    write("x.npz")
    np.savez("test.npz", x=ROWS.features, y=ROWS.labels)
    refused("x.npz: has no split, but other files have; name each by its split", "x.npz", "test.npz")
    np.savez("both.npz", train_x=ROWS.features, train_y=ROWS.labels, test_x=ROWS.features, test_y=ROWS.labels)
    refused("train=both.npz: holds 2 splits of its own", "train=both.npz")
    refused("test.npz: no train split, found test; add one: give train=FILE", "test.npz")


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_nan_and_infinite_features(value, kind, dtype):
    features = ROWS.features.astype(dtype)
    features[[7, 31], 3] = value
    np.savez("a.npz", x=features, y=ROWS.labels)
    refused("a.npz: x: NaN or infinite features in rows 7, 31; remove these rows", "a.npz")


def test_beyond_float16():
    features = ROWS.features.copy()
    features[11, 2] = -70000
    np.savez("a.npz", x=features, y=ROWS.labels)
    refused("x: 70000 in row 11 is beyond float16's 65504; store them with `dtype` float32", "a.npz", dtype="float16")
    assert import_features(["a.npz"], out="set").manifest.statistics.min == -70000


@pytest.mark.parametrize("dtype", [None, "float32", "float16"])
def test_beyond_float32(dtype):
    features = ROWS.features.astype(np.float64)
    features[11, 2], features[12, 0] = -1e300, 1e39
    np.savez("a.npz", x=features, y=ROWS.labels)
    refused(
        r"x: 1e\+300 in rows 11, 12 is beyond float32's 3.4e\+38; divide the features by a constant",
        "a.npz",
        dtype=dtype,
    )
    features[11:13] /= 1e263
    np.savez("a.npz", x=features, y=ROWS.labels)
    assert import_features(["a.npz"], out="set").manifest.statistics.min == pytest.approx(-1e37)


def test_sparse_matrices():
    with pytest.raises(
        InputError, match=r"features: a sparse matrix found, expected a dense one: pass its .toarray\(\)"
    ):
        FeatureSet.from_arrays(scipy.sparse.csr_matrix(ROWS.features), ROWS.labels)
    with pytest.raises(InputError, match=r"features: a sparse matrix found, .* pass its .to_dense\(\)"):
        FeatureSet.from_arrays({"train": torch.tensor(ROWS.features).to_sparse()}, {"train": ROWS.labels})


def test_a_file_too_large_for_memory_is_to_be_imported(monkeypatch):
    write("x.npz")
    monkeypatch.setattr("headsmith.trainer.features.importing.builder.free_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"x.npz: 0.0 GB of features; write them once with headsmith import"):
        FeatureSet.load("x.npz")


def test_only_a_feature_set_is_replaced():
    write("x.npz")
    Path("bundle").mkdir()
    Path("bundle/manifest.json").write_text('{"format": "headsmith.bundle"}')
    with pytest.raises(InputError, match="bundle: exists and is not a feature set; choose another `out`"):
        import_features(["x.npz"], out="bundle", overwrite=True)
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other: holds no manifest.json, so it is not replaced"):
        import_features(["x.npz"], out="other", overwrite=True)
    assert Path("other/notes.txt").read_text() == "mine"


def test_the_command_says_it_in_one_line():
    np.savez("a.npz", x=ROWS.features, y=ROWS.labels[:-1])
    result = CliRunner().invoke(app, ["import", "a.npz", "--out", "set"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("headsmith: a.npz: x has 40 rows and y 39")
    write("x.npz")
    done = CliRunner().invoke(app, ["import", "train=x.npz", "--out", "set", "--dtype", "float16", "--seed", "3"])
    assert done.exit_code == 0
    assert "5 classes, D = 6, float16" in done.output
    assert "drawn with seed 3" in done.output


@pytest.mark.parametrize(("option", "value"), [("checkpoint", "weights.pth"), ("image_size", 64)])
def test_what_belongs_to_a_backbone_needs_one(tmp_path, option, value):
    np.savez(tmp_path / "set.npz", features=np.eye(6, dtype=np.float32), labels=np.arange(6) % 2)
    with pytest.raises(InputError, match=f"{option}: {value} found without `backbone`"):
        import_features(tmp_path / "set.npz", out=tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


def test_a_single_file_needs_no_list(tmp_path):
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    np.savez(tmp_path / "set.npz", features=rows, labels=np.arange(20) % 2)
    found = import_features(str(tmp_path / "set.npz"), out=tmp_path / "out")
    kept = torch.cat([found.arrays(split)[0] for split in found.splits])
    assert sorted(map(tuple, kept.tolist())) == sorted(map(tuple, rows.tolist()))


def test_labels_alone_are_no_feature_set(tmp_path):
    np.save(tmp_path / "x_labels.npy", np.arange(6) % 2)
    with pytest.raises(InputError, match=r"x_labels\.npy: labels without features beside them; name those too"):
        import_features([tmp_path / "x_labels.npy"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_that_cannot_be():
    write("x.npz")
    refused("dtype: 'int8' found, expected one of float16, float32", "x.npz", dtype="int8")
    refused("held_out_share: 0.7 found, expected a share above 0 and below 0.5", "x.npz", held_out_share=0.7)
    import_features(["x.npz"], out="set")
    with pytest.raises(InputError, match="set: exists already; choose another `out` or pass `overwrite`"):
        import_features(["x.npz"], out="set")
    assert import_features(["x.npz"], out="set", overwrite=True, seed=1).manifest.splits["test"] == 5
    with pytest.raises(InputError, match="labels: not by split, but features are"):
        FeatureSet.from_arrays({"train": ROWS.features}, ROWS.labels)
    with pytest.raises(InputError, match="split 'dev' is not known"):
        FeatureSet.from_arrays({"dev": ROWS.features}, {"dev": ROWS.labels})

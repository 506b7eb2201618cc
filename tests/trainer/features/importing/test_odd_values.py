"""Values that no feature set can hold are refused in one line, from files and from arrays alike."""

import struct

import numpy as np
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, import_features, inspect_features

ROWS = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
LABELS = np.arange(60) % 3


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        (ROWS.astype(np.longdouble), LABELS, "float32"),
        (ROWS, np.int64(3), "one value a row"),
        (ROWS, np.array(["a\ud800", "b", "c"])[LABELS], "UTF-8"),
        (ROWS, LABELS.astype(np.uint64) + np.uint64(2**64 - 3), "below 2"),
        (ROWS, LABELS * 1e300, "below 2"),
    ],
    ids=["long double", "a single label", "half a character", "uint64", "huge floats"],
)
def test_arrays_that_cannot_be_kept(tmp_path, features, labels, said):
    np.savez(tmp_path / "x.npz", features=features, labels=labels)
    ways = (
        lambda: import_features(tmp_path / "x.npz", out=tmp_path / "out", label_column="labels"),
        lambda: FeatureSet.from_arrays(features, labels),
    )
    for way in ways:
        with pytest.raises(InputError, match=said):
            way()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_rows(tmp_path):
    rows, labels = torch.tensor(ROWS), torch.tensor(LABELS)
    nested = torch.nested.nested_tensor([rows[:3], rows[3:]])
    for features, own, said in (
        (rows.to("meta"), labels, "meta"),
        (rows, labels.to("meta"), "meta"),
        (nested, labels, "nested"),
    ):
        torch.save({"x": features, "y": own}, tmp_path / "x.pt")
        with pytest.raises(InputError, match=said):
            import_features(tmp_path / "x.pt", out=tmp_path / "out")
        with pytest.raises(InputError, match=said):
            FeatureSet.from_arrays(features, own)


def test_a_list_of_labels_with_none(tmp_path):
    torch.save({"x": torch.tensor(ROWS), "y": [0, None, 2] * 20}, tmp_path / "x.pt")
    with pytest.raises(InputError, match="y: None in row 1"):
        import_features(tmp_path / "x.pt", out=tmp_path / "out")


def test_a_truth_value_as_a_length(tmp_path):
    header = b"{'descr':'<f4','fortran_order':False,'shape':(True,360)}"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + ROWS.tobytes())
    np.save(tmp_path / "x_labels.npy", LABELS)
    with pytest.raises(InputError, match="expected lengths"):
        import_features(tmp_path / "x.npy", out=tmp_path / "out")


def test_a_link_to_itself(tmp_path):
    (tmp_path / "x.npz").symlink_to("x.npz")
    with pytest.raises(InputError, match="cannot be opened|not found"):
        import_features(tmp_path / "x.npz", out=tmp_path / "out")


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": "x"}, {"seed": 1.5}, {"held_out_share": "x"}])
def test_how_rows_are_held_out(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        FeatureSet.from_arrays(ROWS, LABELS, **wrong)


def test_pixels_are_features(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (60, 3))
    lines = [",".join(map(str, [*row, label])) for row, label in zip(pixels, LABELS, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["f0,f1,f2,label", *lines]) + "\n")
    found = import_features(tmp_path / "x.csv", out=tmp_path / "out")
    kept = torch.cat([found.arrays(split)[0] for split in found.splits])
    assert sorted(kept.tolist()) == sorted(pixels.astype(float).tolist())


def test_a_set_of_zeros_is_a_problem():
    found = inspect_features(FeatureSet.from_arrays(ROWS * 0, LABELS))
    assert any("train: all" in one.message for one in found.problems)


@pytest.mark.parametrize("role", ["ids", "groups"])
def test_half_a_character_beside_the_rows(role):
    with pytest.raises(InputError, match=f"{role} has text that UTF-8 cannot write"):
        FeatureSet.from_arrays(ROWS, LABELS, **{role: [f"r{row // 2}\ud800" for row in range(60)]})


@pytest.mark.parametrize("name", ["features", "labels", "ids", "groups"])
def test_masked_arrays_are_refused(name):
    given = {"features": np.ones((8, 3)), "labels": np.arange(8) % 2, "ids": np.arange(8), "groups": np.arange(8)}
    given[name] = np.ma.masked_array(given[name], mask=False)
    with pytest.raises(InputError, match=f"{name}: a masked array found, .*leave those rows out and pass .data"):
        FeatureSet.from_arrays(**given)

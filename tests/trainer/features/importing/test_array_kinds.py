"""Arrays that are no matrix of numbers: what was found, and that what is advised makes a feature set."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.recfunctions import structured_to_unstructured, unstructured_to_structured

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, import_features

X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
Y = np.arange(60) % 3
FIELDS = unstructured_to_structured(X, np.dtype([(f"f{column}", "f4") for column in range(8)]))
OBJECT = X.astype(object)


@pytest.mark.parametrize(
    ("found", "message", "mended"),
    [
        (OBJECT, r"object of float \(60, 8\) is not of .*\.astype\('float32'\)", OBJECT.astype("float32")),
        (X.astype(str), r"str \(60, 8\) is not of .*\.astype\('float32'\)", X.astype(str).astype("float32")),
        (X > 0, r"bool \(60, 8\) is not of real numbers, .*\.astype\('float32'\)$", (X > 0).astype("float32")),
        (torch.tensor(X > 0), r"bool \(60, 8\) is not of real numbers", torch.tensor(X > 0).float()),
        (X.astype(complex), r"complex128 \(60, 8\) .* real and imaginary parts", np.hstack([X, 0 * X])),
        (torch.tensor(X).cfloat(), r"complex64 \(60, 8\) .* absolute values", torch.tensor(X).cfloat().abs()),
        (X.astype("M8[s]"), r"datetime64\[s\] \(60, 8\) is not of .*take numbers", X.astype("M8[s]").astype("int64")),
        (X[:, :0], r"float32 \(60, 0\) has no columns, expected at least one number a row", X[:, :1]),
        (X[:, 0], r"float32 \(60\) has one value a row, .*\.reshape\(-1, 1\)$", X[:, 0].reshape(-1, 1)),
        (X.reshape(60, 2, 4), r"\(60, 2, 4\) has 3 dimensions, .*\.reshape\(len\(array\), -1\)$", X),
        (FIELDS, "structured array with the fields f0, f1, .*_to_unstructured", structured_to_unstructured(FIELDS)),
    ],
)
def test_features_of_another_kind(found, message, mended):
    with pytest.raises(InputError, match=message) as caught:
        FeatureSet.from_arrays(found, Y)
    assert "--" not in str(caught.value)
    assert "another column" not in str(caught.value)
    assert FeatureSet.from_arrays(mended, Y).splits == ["train", "val", "test"]


def test_objects_that_are_no_numbers_are_named():
    found = np.array([[{}, None]] * 60, dtype=object)
    with pytest.raises(InputError, match=r"features object of dict \(60, 2\) is not of real numbers"):
        FeatureSet.from_arrays(found, Y)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("labels", np.eye(3)[Y], r"labels float64 \(60, 3\) has not one value a row.*; take .argmax\(1\)"),
        ("labels", np.zeros(60, [("a", "i4"), ("b", "i4")]), r"labels: .* fields a, b found.*take one field"),
        ("ids", np.array([{}] * 60, dtype=object), r"ids object of dict \(60\) cannot be read, expected numbers or"),
        ("groups", Y.astype(complex), r"groups complex128 \(60\) cannot be read, expected numbers or text"),
    ],
)
def test_other_columns_of_another_kind(column, values, message):
    with pytest.raises(InputError, match=message) as caught:
        FeatureSet.from_arrays(X, **{"labels": Y} | {column: values})
    assert "another column" not in str(caught.value)


def test_arrays_are_told_of_arguments_and_files_of_files(tmp_path):
    rows = {"x": X[:3], "y": Y[:3]}
    with pytest.raises(InputError, match=r"add rows, or give a mapping with val as `features` and `labels`$"):
        FeatureSet.from_arrays(rows["x"], rows["y"])
    with pytest.raises(InputError, match=r"no train split, found test; .* a mapping with train as `features`"):
        FeatureSet.from_arrays({"test": X}, {"test": Y})
    np.savez(tmp_path / "few.npz", **rows)
    with pytest.raises(InputError, match=r"add rows, or give val=FILE$"):
        import_features(tmp_path / "few.npz", out=tmp_path / "set", label_column="y")
    with pytest.raises(InputError, match=r"give val=FILE to `headsmith import`, whose folder can be read"):
        FeatureSet.load(tmp_path / "few.npz")


def test_a_structured_file_is_told_of_its_fields(tmp_path):
    np.savez(tmp_path / "a.npz", x=FIELDS, y=Y)
    with pytest.raises(InputError, match=r"is not of real numbers.*structured_to_unstructured; or name .*`feature_col"):
        import_features(tmp_path / "a.npz", out=tmp_path / "set", feature_column="x", label_column="y")


NEGATIVE = {
    "its view": lambda values: torch._neg_view(values),
    "of the conjugate": lambda values: torch.complex(torch.zeros_like(values), -values).conj().imag,
    "with a gradient": lambda values: torch._neg_view(values).requires_grad_(),
}


@pytest.mark.parametrize("view", NEGATIVE.values(), ids=NEGATIVE)
def test_tensors_whose_sign_torch_keeps_apart(view, tmp_path):
    """Tensors with torch's negative bit are the values that torch computes with."""
    features = view(torch.from_numpy(X))
    assert features.is_neg()
    expected = FeatureSet.from_arrays(features.detach().clone().resolve_neg(), Y)
    found = [FeatureSet.from_arrays(features, Y)]
    torch.save({"x": features, "y": torch._neg_view(torch.from_numpy(-Y))}, tmp_path / "f.pt")
    found.append(import_features(tmp_path / "f.pt", out=tmp_path / "set"))
    for one in found:
        assert one.class_names == ["0", "1", "2"]
        assert all(torch.equal(one.arrays(split)[0], expected.arrays(split)[0]) for split in expected.splits)


def test_a_list_of_such_tensors_is_told():
    with pytest.raises(InputError, match=r"^features: no array can be made of it \(.*torch.stack"):
        FeatureSet.from_arrays([torch._neg_view(row) for row in torch.from_numpy(X)], Y)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.npy", Y), "^features: 'x.npy' found, expected an array or a list; import_features reads files$"),
        ((Path("x.npy"), Y), "^features: 'x.npy' found, expected an array or a list"),
        ((X, "y.npy"), "^labels: 'y.npy' found, expected an array"),
        ((object(), Y), "^features: object found, expected an array or a list$"),
        (({}, {}), "^features: an empty mapping found, expected an array, or one for each of train, val and test$"),
    ],
)
def test_what_is_no_array_at_all(arguments, said):
    with pytest.raises(InputError, match=said):
        FeatureSet.from_arrays(*arguments)


def test_ids_of_more_than_64_bits():
    ids = [2**100 + row for row in range(60)]
    found = FeatureSet.from_arrays(X, Y, ids=ids)
    assert sorted(int(one) for split in found.splits for one in found.ids(split)) == ids

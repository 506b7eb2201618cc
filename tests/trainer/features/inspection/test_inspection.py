"""What `inspect` tells of a feature set: planted faults, counted by numpy and by hand."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.models import InputError
from headsmith.trainer import FeatureSet, inspect_features
from headsmith.trainer.features.columns import read_columns

PIXELS, LABELS = load_digits(return_X_y=True)
DISTINCT = np.unique(PIXELS, axis=0, return_index=True)[1]
runner = CliRunner()


def digits(out, **options):
    rows = np.sort(DISTINCT)
    return FeatureSet.from_arrays(PIXELS[rows].astype(np.float32), LABELS[rows], out=out, **options)


def change(path, split, row, value, column="features"):
    """Write into the mapped file itself."""
    columns = read_columns(path / split)
    (file,) = (path / split).glob("data-*.arrow")
    array = columns.features if column == "features" else columns.labels
    content = bytearray(file.read_bytes())
    start = content.index(array.tobytes()) + row * array.strides[0]
    changed = np.full_like(array[row], value).tobytes()
    file.write_bytes(content[:start] + changed + content[start + len(changed) :])


def test_a_sound_set(tmp_path):
    features = digits(tmp_path / "set")
    found = inspect_features(features.path)
    assert found.problems == found.warnings == []
    assert (found.classes, found.feature_dim, found.dtype, found.backbone) == (10, 64, "float32", None)
    for split in features.splits:
        rows, labels = features.arrays(split)
        report = found.splits[split]
        norms = np.linalg.norm(rows.numpy(), axis=1)
        assert report.norm == pytest.approx((norms.min(), norms.mean(), norms.max()), rel=1e-6)
        assert list(report.histogram.values()) == np.bincount(labels).tolist()
        assert report.rows == len(labels)
    train, val = features.arrays("train"), features.arrays("val")
    peer = KNeighborsClassifier(5, metric="cosine", weights="distance").fit(*train).score(*val)
    assert found.neighbours.accuracy == pytest.approx(peer)
    assert found.neighbours.accuracy > 0.95
    result = runner.invoke(app, ["inspect", str(features.path)])
    assert result.exit_code == 0
    assert "nothing that would spoil a training" in result.output


def test_what_load_refuses_is_told_with_its_rows(tmp_path):
    features = digits(tmp_path / "set")
    change(features.path, "train", 3, np.nan)
    change(features.path, "train", 8, np.nan)
    change(features.path, "val", 5, np.inf)
    change(features.path, "test", 1, 77, "labels")
    with pytest.raises(InputError):
        FeatureSet.load(features.path)
    found = inspect_features(features.path)
    assert (found.splits["train"].nan.count, found.splits["train"].nan.rows) == (2, [3, 8])
    assert found.splits["val"].infinite.ids == [features.ids("val")[5]]
    assert (found.splits["test"].unlabelled.rows, found.splits["val"].nan.count) == ([1], 0)
    name = features.ids("train")[3]
    assert any(text.startswith(f"train: 2 rows have NaN features: row 3 ({name}), row 8") for text in found.problems)
    assert any("test: 1 rows have no label among the classes: row 1" in text for text in found.problems)
    assert any(text.startswith("test: ids and labels are not those that were written") for text in found.problems)
    result = runner.invoke(app, ["inspect", str(features.path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.output)["splits"]["train"]["nan"] == {
        "count": 2,
        "rows": [3, 8],
        "ids": [features.ids("train")[3], features.ids("train")[8]],
    }
    assert "problem: train: 2 rows have NaN" in runner.invoke(app, ["inspect", str(features.path)]).output


def test_zero_and_repeated_rows(tmp_path):
    features = digits(tmp_path / "set")
    change(features.path, "train", 4, 0.0)
    change(features.path, "train", 6, 0.0)
    change(features.path, "train", 10, 2.0)
    change(features.path, "train", 12, 2.0)
    found = inspect_features(features.path)
    report = found.splits["train"]
    assert (report.zero.rows, report.duplicates.rows) == ([4, 6], [12])
    assert found.problems == []
    assert any(text.startswith("train: 2 rows (0.14%) are zero throughout: row 4") for text in found.warnings)


def test_leaks(tmp_path):
    rng = np.random.default_rng(0)
    rows = {split: rng.normal(size=(30, 4)) for split in ("train", "val", "test")}
    labels = dict.fromkeys(rows, np.arange(30) % 3)
    rows["test"][7] = rows["train"][2]
    rows["test"][9] = rows["val"][4]
    ids = {split: [f"{split}{row}" for row in range(30)] for split in rows}
    ids["val"][1] = "train29"
    found = inspect_features(FeatureSet.from_arrays(rows, labels, ids=ids, out=tmp_path / "set").path)
    assert (found.leaked_ids.count, found.leaked_ids.ids) == (1, ["train29"])
    assert {split: leak.rows for split, leak in found.leaked_rows.items()} == {"test": [7, 9]}
    assert "1 ids stand in more than one split: train29" in found.problems
    expected = "test: 2 rows (6.67%) are equal to rows of an earlier split: row 7 (test7), row 9 (test9)"
    assert expected in found.problems


def test_labels_of_other_rows_are_doubted(tmp_path):
    rows = np.sort(DISTINCT)
    wrong = np.random.default_rng(1).permutation(np.arange(len(rows)) % 7)
    features = FeatureSet.from_arrays(PIXELS[rows], wrong, out=tmp_path / "set", held_out_share=0.3)
    found = inspect_features(features.path)
    assert found.neighbours.accuracy == pytest.approx(1 / 7, abs=0.05)
    assert found.neighbours.chance == pytest.approx(1 / 7, abs=0.01)
    assert "are these the labels of these rows?" in found.warnings[-1]


def test_classes_without_rows(tmp_path):
    features = digits(tmp_path / "set", class_names=[f"digit {number}" for number in range(12)])
    found = inspect_features(features.path)
    assert found.empty_classes == ["digit 10", "digit 11"]
    assert "2 classes have no row: digit 10, digit 11" in found.warnings


def test_what_is_no_feature_set(tmp_path):
    result = runner.invoke(app, ["inspect", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not a feature set" in result.stderr

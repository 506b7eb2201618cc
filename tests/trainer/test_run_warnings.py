"""What a training warns of, and what it does not."""

import dataclasses
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits, load_wine
from split_features import feature_set, small

from headsmith.core.coded_warnings import CodedWarning
from headsmith.evaluate import evaluate_classifiers
from headsmith.export import export_classifier
from headsmith.trainer import FeatureSet, import_features, inspect_features, train
from headsmith.trainer.fitting.best_epochs import Selection

QUICK = {"epochs": 3, "learning_rate": 0.01, "device": "cpu"}


def test_columns_of_different_scales_are_told(tmp_path):
    wine = small(load_wine)
    deviations = np.sort(wine.arrays("train")[0].numpy().std(0))
    [warning] = train(wine, out=tmp_path / "run", learning_rate=0.01, epochs=200, device="cpu").record.warnings
    assert (
        f"deviates by {deviations[-1]:.3g}, the median one by {deviations[6]:.3g}; try `head` norm" in warning.message
    )
    scaled = train(wine, out=tmp_path / "scaled", head="norm_linear", epochs=50, device="cpu")
    assert scaled.record.warnings == []


def test_a_loss_above_that_of_equal_scores_is_warned_of(digits, tmp_path):
    wild = train(digits, out=tmp_path / "wild", learning_rate=1e30, epochs=3, device="cpu")
    [warning] = wild.record.warnings
    assert (
        f"above {np.log(10):.3g}, that of equal scores for all classes; lower `learning_rate` (now 1e+30)"
        in warning.message
    )
    calm = train(digits, out=tmp_path / "calm", epochs=3, device="cpu")
    assert calm.record.warnings == []


def test_a_loss_that_overflows_later_is_warned_of(digits, tmp_path, monkeypatch):
    add = Selection.add
    monkeypatch.setattr(
        Selection,
        "add",
        lambda self, head, row: add(self, head, dataclasses.replace(row, loss=np.inf) if row.epoch > 2 else row),
    )
    run = train(digits, out=tmp_path / "run", epochs=5, learning_rate=0.01, device="cpu")
    assert run.record.warnings[0].code == "diverged"
    assert "the loss is inf in epoch 3, epoch 2 was kept" in run.record.warnings[0].message


def test_a_test_split_with_other_labels_is_warned_of(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    rows = {"train": slice(0, 1000), "val": slice(1000, 1400), "test": slice(1400, None)}
    columns = {name: pixels[part] for name, part in rows.items()}, {name: labels[part] for name, part in rows.items()}
    settings = {"epochs": 30, "device": "cpu"}
    assert train(FeatureSet.from_arrays(*columns), out=tmp_path / "right", **settings).record.warnings == []
    columns[1]["test"] = np.random.default_rng(0).permutation(columns[1]["test"])
    [warning] = train(FeatureSet.from_arrays(*columns), out=tmp_path / "wrong", **settings).record.warnings
    assert warning.code == "unlike-test"
    assert warning.message.startswith("test is unlike val: top-1 ")


def test_a_common_offset_is_warned_of_and_standardisation_copes(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels[:, pixels.std(0) > 1] + 1000
    rows = FeatureSet.from_arrays(pixels, labels)
    run = train(rows, out=tmp_path / "run", epochs=5, device="cpu")
    [warning] = [found for found in run.record.warnings if found.code == "offset"]
    expected = np.median(pixels.mean(0) / pixels.std(0))
    assert float(re.search(r"is ([\d.]+) times", warning.message)[1]) == pytest.approx(expected, rel=0.1)
    scaled = train(rows, out=tmp_path / "scaled", head="norm_linear", epochs=30, device="cpu")
    assert scaled.record.warnings == []
    assert scaled.record.results.test.top1 > 0.9


def test_tiny_features_are_warned_of(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    rows = FeatureSet.from_arrays(pixels * 1e-5, labels)
    [warning] = train(rows, out=tmp_path / "run", epochs=30, device="cpu").record.warnings
    sizes = np.sqrt(np.square(rows.arrays("train")[0].numpy()).mean(0))
    size = float(re.match(r"the root mean square of the median column of the features is (\S+);", warning.message)[1])
    assert size == pytest.approx(np.median(sizes[sizes > 0]), rel=0.05)


def test_a_head_at_chance_level_is_warned_of(tmp_path):
    generator = np.random.default_rng(0)
    noise = feature_set(generator.normal(size=(300, 4)), generator.integers(5, size=300), classes=5)
    run = train(noise, out=tmp_path / "run", epochs=1, device="cpu")
    assert run.record.warnings[0].code == "chance"


@pytest.mark.parametrize(
    ("shares", "head"),
    [((0.64, *[0.04] * 9), "linear"), ((0.64, *[0.04] * 9), "norm_linear"), ((0.9, 0.05, 0.05), "linear")],
)
def test_noise_with_a_frequent_class_is_at_chance_level(tmp_path, shares, head):
    """Guessing among equal classes is right for 10 % and 33 %, naming always the first class for 64 % and 90 %."""
    generator = np.random.default_rng(0)
    labels = generator.choice(len(shares), 1500, p=shares)
    noise = feature_set(generator.normal(size=(1500, 16)), labels, classes=len(shares))
    run = train(noise, out=tmp_path / "run", head=head, epochs=20, learning_rate=0.05, device="cpu")
    assert run.record.results.val.top1 > 1.5 / len(shares)
    [warning] = [found for found in run.record.warnings if found.code == "chance"]
    largest = (noise.arrays("val")[1] == 0).double().mean()
    assert f"always named, is right for {largest:.1%}" in warning.message
    assert run.worthless


def test_a_head_that_knows_frequent_and_rare_classes_is_not_at_chance_level(tmp_path):
    generator = np.random.default_rng(0)
    labels = generator.choice(4, 1500, p=(0.7, 0.1, 0.1, 0.1))
    rows = feature_set(np.eye(4)[labels] + generator.normal(0, 0.4, (1500, 4)), labels, classes=4)
    run = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.05, device="cpu")
    assert not run.worthless
    assert run.record.warnings == []


def test_classes_with_one_or_two_training_rows_are_named(tmp_path):
    labels = {"train": [0, 1, 2] * 60 + [3, 4, 4, 5, 5, 5], "val": [0, 1, 2, 3] * 9, "test": [0, 1, 2, 3] * 9}
    names = ["ant", "bee", "cat", "dog", "eel", "fox"]
    rows = FeatureSet.from_arrays({name: np.eye(6)[one] for name, one in labels.items()}, labels, class_names=names)
    run = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.1, device="cpu")
    few = "2 of 6 classes have one or two training rows: dog (1), eel (2)"
    assert CodedWarning("few-rows", few) in run.record.warnings
    assert CodedWarning("few-rows", few) in inspect_features(rows).warnings


def test_ids_in_two_splits_are_warned_of(digits, tmp_path):
    columns = dict(digits.columns)
    ids = [digits.ids("train")[8], *digits.ids("val")[1:-1], digits.ids("test")[3]]
    columns["val"] = dataclasses.replace(columns["val"], names=pa.array(ids))
    leaking = dataclasses.replace(digits, columns=columns)
    [warning] = train(leaking, out=tmp_path / "run", **QUICK).record.warnings
    assert warning.code == "leak"
    assert warning.message.startswith(f"2 ids are in more than one split ({ids[0]}, {ids[-1]})")


@pytest.mark.parametrize("read", [FeatureSet.load, lambda path: import_features(path, out=path.with_name("set"))])
def test_rows_that_import_found_in_two_splits_are_warned_of(read, tmp_path):
    labels = np.arange(120) % 3
    rows = np.random.default_rng(0).normal(size=(120, 4)) + 3 * np.eye(4)[labels]
    rows[81:85] = rows[:4]
    rows[111:114] = rows[60:63]
    parts = {"train": slice(0, 60), "val": slice(60, 90), "test": slice(90, 120)}
    arrays = {
        f"{name}_{key}": values[one] for name, one in parts.items() for key, values in (("x", rows), ("y", labels))
    }
    np.savez(tmp_path / "a.npz", **arrays)
    leaking = read(tmp_path / "a.npz")
    told = [one for one in train(leaking, out=tmp_path / "run", **QUICK).record.warnings if one.code == "leak"]
    assert [one.message for one in told] == [
        "accuracies may be too high: 14 rows are equal to another row, 7 of them to a row of an earlier split: see "
        "`headsmith inspect`"
    ]


def test_a_measurement_on_rows_of_two_splits_warns_too(tmp_path):
    rows, labels = np.random.default_rng(0).normal(size=(90, 4)), np.arange(90) % 3
    rows[60:64] = rows[:4]
    parts = {"train": slice(0, 60), "test": slice(60, 90)}
    arrays = {
        f"{name}_{key}": values[one] for name, one in parts.items() for key, values in (("x", rows), ("y", labels))
    }
    np.savez(tmp_path / "a.npz", **arrays)
    leaking = import_features(tmp_path / "a.npz", out=tmp_path / "set")
    bundle = export_classifier(train(leaking, out=tmp_path / "run", **QUICK), out=tmp_path / "b", head_only=True)
    results = evaluate_classifiers([bundle.path], data=leaking.path, out=tmp_path / "results")
    assert [one.code for one in results.data.warnings] == ["leak"]


def test_rows_that_are_equal_within_a_split_are_no_leak(tmp_path):
    rows, labels = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    parts = {"train": rows[[0, 0, *range(28)]], "val": rows + 1, "test": rows + 2}
    warned = train(
        FeatureSet.from_arrays(parts, dict.fromkeys(parts, labels)), out=tmp_path / "run", **QUICK
    ).record.warnings
    assert "leak" not in [one.code for one in warned]


def test_classes_without_training_rows_are_warned_of(tmp_path):
    labels = np.array([0, 1] * 30 + [0, 1, 2, 2] * 10)
    rows = feature_set(np.eye(3)[labels], labels, classes=3)
    warnings = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.1, device="cpu").record.warnings
    text = "10 rows (50.00%) are of classes without a training row, which no head can answer: 2"
    assert warnings[-2:] == [CodedWarning("unanswerable", f"{split}: {text}") for split in ("val", "test")]


def test_a_first_epoch_that_stays_the_best_is_warned_of(tmp_path):
    """One label in five of validation is wrong: the surer the head, the worse its loss there."""
    truth = np.arange(500) % 2
    labels = np.where((np.arange(500) >= 300) & (np.arange(500) % 5 == 0), 1 - truth, truth)
    rows = feature_set(np.eye(2)[truth], labels, classes=2)
    settings = {"learning_rate": 0.1, "batch_size": 20, "epochs": 30, "patience": 6, "device": "cpu"}
    run = train(rows, out=tmp_path / "run", **settings)
    losses = [json.loads(line)["loss"] for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    [warning] = run.record.warnings
    assert warning.code == "first-epoch"
    assert warning.message.startswith(
        "the best epoch is 1 of 7: validation accuracy never rose, while the training loss fell"
    )
    assert f" from {losses[0]:.3g} to {losses[6]:.3g}; lower `learning_rate` (now 0.1)" in warning.message


def test_a_first_epoch_with_all_right_is_not_warned_of(tmp_path):
    labels = np.arange(300) % 3
    run = train(feature_set(np.eye(3)[labels], labels, classes=3), out=tmp_path / "run", **QUICK | {"epochs": 10})
    assert run.record.results.val.top1 == 1
    assert run.record.warnings == []


@pytest.mark.parametrize(
    ("rows", "needed"), [(30, "so few tell nothing, give at least 5 val rows"), (300, "right would")]
)
def test_chance_level_says_how_many_right_rows_would_do(tmp_path, rows, needed):
    """Of three rows all may be right by chance once in 27; of five once in 243."""
    generator = np.random.default_rng(0)
    noise = FeatureSet.from_arrays(generator.normal(size=(rows, 4)), np.arange(rows) % 3)
    run = train(noise, out=tmp_path / "run", epochs=1, device="cpu")
    [warning] = [found for found in run.record.warnings if found.code == "chance"]
    count = run.record.results.val.n
    assert f"of the {count} val rows; " in warning.message
    assert needed in warning.message


@pytest.mark.parametrize("rate", [1e30, 1e8])
def test_a_loss_that_ran_away_is_worthless(tmp_path, rate):
    digits = load_digits()
    rows = FeatureSet.from_arrays(digits.data, digits.target)
    run = train(rows, out=tmp_path / "run", epochs=2, learning_rate=rate, device="cpu")
    assert "runaway" in {warning.code for warning in run.record.warnings}
    assert run.worthless


def test_a_rate_that_is_only_high_is_not(tmp_path):
    digits = load_digits()
    rows = FeatureSet.from_arrays(digits.data, digits.target)
    run = train(rows, out=tmp_path / "run", epochs=20, learning_rate=1.0, device="cpu")
    assert not run.worthless


def test_features_that_were_damaged_after_they_were_written_are_warned_of(tmp_path):
    rows, labels = np.random.default_rng(0).normal(size=(90, 4)), np.arange(90) % 3
    whole = FeatureSet.from_arrays(rows, labels, out=tmp_path / "set")
    assert "damaged" not in [one.code for one in train(whole, out=tmp_path / "sound", **QUICK).record.warnings]
    (file,) = (tmp_path / "set" / "train").glob("*.arrow")
    content, value = bytearray(file.read_bytes()), whole.arrays("train")[0].numpy()[5].tobytes()
    content[content.index(value) + 2] ^= 0x40
    file.write_bytes(content)
    found = train(tmp_path / "set", out=tmp_path / "run", **QUICK).record.warnings
    assert ["train: features are not those" in one.message for one in found if one.code == "damaged"] == [True]

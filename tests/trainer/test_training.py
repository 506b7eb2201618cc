"""Training on scikit-learn's digits: real data, and scikit-learn's own answer beside ours."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import top_k_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headsmith.models import InputError
from headsmith.models.heads import Linear
from headsmith.trainer import FeatureSet, Run, TrainConfig, train
from headsmith.trainer.criterion import resolve
from headsmith.trainer.features.columns import Columns
from headsmith.trainer.fitting import fit_heads
from headsmith.trainer.fitting.selection import Selection

QUICK = {"epochs": 3, "learning_rate": 0.01, "device": "cpu"}


def feature_set(features, labels, classes: int, splits=(0.6, 0.2)) -> FeatureSet:
    """Rows in their order: the first 60 % train, then 20 % val, then test."""
    cuts = np.cumsum([int(share * len(labels)) for share in splits])
    ids = np.array([f"{row:04d}" for row in range(len(labels))])
    columns = {
        name: Columns(pa.array(ids[rows]), labels[rows].astype(np.int64), features[rows].astype(np.float32))
        for name, rows in zip(("train", "val", "test"), np.split(np.arange(len(labels)), cuts), strict=True)
    }
    manifest = {
        "class_names": [str(name) for name in range(classes)],
        "splits": {name: len(split.ids) for name, split in columns.items()},
        "feature_dim": features.shape[1],
        "dtype": "float32",
        "backbone": {"spec": "none"},
        "source": {"source": "digits"},
        "fingerprint": "digits",
    }
    return FeatureSet(Path("digits"), manifest, columns)


@pytest.fixture(scope="module")
def digits():
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))  # the file goes writer by writer
    return feature_set(pixels[order] / 16, labels[order], classes=10)


def logits_of(run: Run, digits: FeatureSet, split: str) -> tuple[np.ndarray, np.ndarray]:
    features, labels = digits.arrays(split)
    with torch.inference_mode():
        return run.head(features).numpy(), labels.numpy()


@pytest.mark.parametrize("loss", [{"loss": "softmax"}, {"loss": "neuralsort", "p_k": (0.5, 0.5)}])
def test_as_accurate_as_scikit_learn(digits, tmp_path, loss):
    features, labels = digits.arrays("test")
    peer = LogisticRegression(max_iter=2000, C=10).fit(*digits.arrays("train")).predict_proba(features)
    run = train(digits, out=tmp_path / "run", epochs=60, learning_rate=0.02, device="cpu", **loss)
    expected = sum(w * top_k_accuracy_score(labels, peer, k=k) for k, w in enumerate(run.config.p_k, start=1))
    assert run.record["results"]["test"]["score"] > expected - 0.02


@pytest.mark.parametrize("loss", ["neuralsort", "odd_even", "bitonic", "splitter_selection", "sinkhorn"])
def test_defaults_learn_where_top5_is_nearly_free(digits, tmp_path, loss):
    """Ten classes, at most a tenth below scikit-learn: what the defaults of these losses failed at."""
    features, labels = digits.arrays("test")
    peer = LogisticRegression(max_iter=2000).fit(*digits.arrays("train")).score(features, labels)
    run = train(digits, out=tmp_path / "run", loss=loss, epochs=100, device="cpu")
    assert run.record["results"]["test"]["top1"] > peer - 0.1
    assert run.record["doubts"] == []


def small(load) -> FeatureSet:
    features, labels = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return feature_set(features[order], labels[order], classes=3)


@pytest.mark.parametrize("load", [load_iris, load_wine])  # wine has columns from 0.1 to 1,680
@pytest.mark.parametrize("loss", ["softmax", "neuralsort"])
def test_defaults_learn_from_a_hundred_rows(tmp_path, load, loss):
    rows = small(load)
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(*rows.arrays("train"))
    run = train(rows, out=tmp_path / "run", loss=loss, device="cpu")
    assert run.record["results"]["test"]["top1"] > peer.score(*rows.arrays("test")) - 0.1


def test_columns_of_different_scales_are_told(tmp_path):
    wine = small(load_wine)
    deviations = np.sort(wine.arrays("train")[0].numpy().std(0))
    [doubt] = train(wine, out=tmp_path / "run", learning_rate=0.01, epochs=200, device="cpu").record["doubts"]
    assert f"deviates by {deviations[-1]:.3g}, the median one by {deviations[6]:.3g}; try --head norm" in doubt
    scaled = train(wine, out=tmp_path / "scaled", head="norm_linear", epochs=50, device="cpu")
    assert scaled.record["doubts"] == []


@pytest.mark.parametrize(
    ("given", "epochs", "patience"),
    [
        ({}, 1000, 100),  # 1078 rows are 3 steps of 512
        ({"batch_size": 4096}, 3000, 300),
        ({"batch_size": 8}, 100, 10),
        ({"epochs": 7}, 7, 100),
        ({"patience": 5}, 1000, 5),
        ({"optimizer": "lbfgs"}, 100, 10),
    ],
    ids=str,
)
def test_a_small_split_has_epochs_for_3000_steps(given, epochs, patience):
    found = resolve(TrainConfig(**given), num_classes=10, features=torch.ones(1078, 1))
    assert (found.epochs, found.patience) == (epochs, patience)


@pytest.mark.parametrize(
    ("given", "size", "rate"),
    [
        ({}, 0.84, 3e-3),  # the glyph set's, where the rates were found
        ({}, 2.0, 3e-3),
        ({}, 255.0, 2.35e-5),
        ({}, 0.028, 3e-2),  # 1,280 columns, length 1
        ({"loss": "softsort"}, 0.14, 2e-2),
        ({"optimizer": "adamw"}, 0.14, 6e-3),
        ({}, 1e-6, 0.6),
        ({}, 0.0, 3e-3),
        ({}, torch.inf, 3e-3),
        ({"learning_rate": 0.5}, 0.028, 0.5),
        ({"optimizer": "sgd"}, 0.028, 0.15),
        ({"head": "cosine"}, 0.028, 3e-3),
        ({"head": "norm_linear"}, 0.028, 3e-3),
    ],
    ids=str,
)
def test_the_default_rate_is_for_features_of_this_size(given, size, rate):
    features = size * torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(3000, 1)
    assert resolve(TrainConfig(**given), 10, features).learning_rate == pytest.approx(rate)


@pytest.mark.parametrize("loss", ["softmax", "neuralsort"])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_defaults_learn_from_features_of_any_size(loss, scale):
    pixels, labels = load_digits(return_X_y=True)
    rows = [torch.from_numpy(pixels * scale).float(), torch.from_numpy(labels).long()]
    train_rows, val, test = ([part[start::3] for part in rows] for start in range(3))
    [fitted] = fit_heads({"train": train_rows, "val": val, "test": test}, 10, [TrainConfig(loss=loss, device="cpu")])
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(*map(np.asarray, train_rows))
    assert fitted.test["top1"] > peer.score(*map(np.asarray, test)) - 0.03


def test_a_large_split_has_100_epochs():
    found = resolve(TrainConfig(), num_classes=1000, features=torch.ones(1_281_167, 1))
    assert (found.epochs, found.patience, found.batch_size) == (100, 10, 512)


def test_a_loss_above_that_of_equal_scores_is_doubted(digits, tmp_path):
    wild = train(digits, out=tmp_path / "wild", learning_rate=1e30, epochs=3, device="cpu")
    [doubt] = wild.record["doubts"]
    assert f"where {np.log(10):.3g} needs no features; change --learning-rate (now 1e+30)" in doubt
    calm = train(digits, out=tmp_path / "calm", epochs=3, device="cpu")
    assert calm.record["doubts"] == []


def test_a_loss_that_overflows_later_is_doubted(digits, tmp_path, monkeypatch):
    add = Selection.add
    monkeypatch.setattr(
        Selection, "add", lambda self, head, row: add(self, head, row | ({"loss": np.inf} if row["epoch"] > 2 else {}))
    )
    run = train(digits, out=tmp_path / "run", epochs=5, learning_rate=0.01, device="cpu")
    assert "diverged: the loss is inf in epoch 3, epoch 2 was kept" in run.record["doubts"][0]


def test_a_test_split_with_other_labels_is_doubted(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    rows = {"train": slice(0, 1000), "val": slice(1000, 1400), "test": slice(1400, None)}
    columns = {name: pixels[part] for name, part in rows.items()}, {name: labels[part] for name, part in rows.items()}
    settings = {"epochs": 30, "device": "cpu"}
    assert train(FeatureSet.from_arrays(*columns), out=tmp_path / "right", **settings).record["doubts"] == []
    columns[1]["test"] = np.random.default_rng(0).permutation(columns[1]["test"])
    [doubt] = train(FeatureSet.from_arrays(*columns), out=tmp_path / "wrong", **settings).record["doubts"]
    assert doubt.startswith("test is unlike val: top-1 ")


def test_a_common_offset_is_doubted_and_standardisation_copes(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels[:, pixels.std(0) > 1] + 1000
    rows = FeatureSet.from_arrays(pixels, labels)
    [doubt] = [
        found for found in train(rows, out=tmp_path / "run", epochs=5, device="cpu").record["doubts"] if "off" in found
    ]
    expected = np.median(pixels.mean(0) / pixels.std(0))
    assert float(re.search(r"is ([\d.]+) times", doubt)[1]) == pytest.approx(expected, rel=0.1)
    scaled = train(rows, out=tmp_path / "scaled", head="norm_linear", epochs=30, device="cpu")
    assert scaled.record["doubts"] == []
    assert scaled.record["results"]["test"]["top1"] > 0.9


def test_tiny_features_are_doubted(tmp_path):
    pixels, labels = load_digits(return_X_y=True)
    rows = FeatureSet.from_arrays(pixels * 1e-5, labels)
    [doubt] = train(rows, out=tmp_path / "run", epochs=30, device="cpu").record["doubts"]
    assert doubt.startswith("tiny: ")


def test_a_head_at_chance_level_is_doubted(tmp_path):
    generator = np.random.default_rng(0)
    noise = feature_set(generator.normal(size=(300, 4)), generator.integers(5, size=300), classes=5)
    run = train(noise, out=tmp_path / "run", epochs=1, device="cpu")
    assert "chance level" in run.record["doubts"][0]


def test_ids_in_two_splits_are_doubted(digits, tmp_path):
    columns = dict(digits.columns)
    ids = [digits.ids("train")[8], *digits.ids("val")[1:-1], digits.ids("test")[3]]
    columns["val"] = dataclasses.replace(columns["val"], names=pa.array(ids))
    leaking = dataclasses.replace(digits, columns=columns)
    [doubt] = train(leaking, out=tmp_path / "run", **QUICK).record["doubts"]
    assert doubt.startswith(f"leak: 2 ids stand in more than one split ({ids[0]}, {ids[-1]})")


def test_classes_without_training_rows_are_doubted(tmp_path):
    labels = np.array([0, 1] * 30 + [0, 1, 2, 2] * 10)
    rows = feature_set(np.eye(3)[labels], labels, classes=3)
    doubts = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.1, device="cpu").record["doubts"]
    text = "10 rows (50.00%) are of classes without a training row, which no head can answer: 2"
    assert doubts[-2:] == [f"val: {text}", f"test: {text}"]


def test_a_first_epoch_that_stays_the_best_is_doubted(tmp_path):
    """One label in five of validation is wrong: the surer the head, the worse its loss there."""
    truth = np.arange(500) % 2
    labels = np.where((np.arange(500) >= 300) & (np.arange(500) % 5 == 0), 1 - truth, truth)
    rows = feature_set(np.eye(2)[truth], labels, classes=2)
    settings = {"learning_rate": 0.1, "batch_size": 20, "epochs": 30, "patience": 6, "device": "cpu"}
    run = train(rows, out=tmp_path / "run", **settings)
    losses = [json.loads(line)["loss"] for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    [doubt] = run.record["doubts"]
    assert doubt.startswith("the best epoch is 1 of 7: validation never had more right, while the training loss fell")
    assert f" from {losses[0]:.3g} to {losses[6]:.3g}; lower --learning-rate (now 0.1)" in doubt


def test_a_first_epoch_with_all_right_is_not_doubted(tmp_path):
    labels = np.arange(300) % 3
    run = train(feature_set(np.eye(3)[labels], labels, classes=3), out=tmp_path / "run", **QUICK | {"epochs": 10})
    assert run.record["results"]["val"]["top1"] == 1
    assert run.record["doubts"] == []


def test_the_record_says_how_many_processes_trained(tiny_run, tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    asked = ["train", tiny_run.record["features"]["path"], "--out", str(tmp_path / "run"), "--epochs", "1"]
    command = [*launcher, "-m", "headsmith", *asked, "--device", "cpu"]
    subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    assert Run.load(tmp_path / "run").record["processes"] == 2
    assert tiny_run.record["processes"] == 1  # without torchrun


def test_a_full_batch_is_one_step_of_adam_on_the_cross_entropy(digits, tmp_path):
    features, labels = digits.arrays("train")
    head = Linear(64, 10)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    torch.nn.functional.cross_entropy(head(features), labels).backward()
    optimizer.step()
    run = train(
        digits, out=tmp_path / "run", epochs=1, batch_size=len(labels), learning_rate=0.01, start="zeros", device="cpu"
    )
    torch.testing.assert_close(run.head.weight, head.weight.detach(), atol=1e-6, rtol=0)


def test_reported_accuracies_are_those_of_the_saved_head(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", **QUICK)
    for split in ("val", "test"):
        logits, labels = logits_of(run, digits, split)
        for k in (1, 5):
            expected = top_k_accuracy_score(labels, logits, k=k, labels=range(10))
            assert run.record["results"][split][f"top{k}"] == pytest.approx(expected, abs=1e-12)


def test_the_best_epoch_is_kept_and_patience_ends_the_run(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", epochs=50, learning_rate=5.0, patience=2, seed=1, device="cpu")
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    scores, losses = ([row["val"][name] for row in rows] for name in ("score", "loss"))
    best = run.record["results"]["best_epoch"]
    assert scores[best - 1] == max(scores)
    assert best <= len(rows) - 2 < 48
    assert min(losses[-2:]) > 0.999 * min(losses[:-2])
    assert run.record["results"]["val"] == rows[best - 1]["val"]
    assert all("test" not in row for row in rows)


def test_selection_weighs_the_accuracies_by_p_k(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", loss="neuralsort", p_k=(0.25, 0, 0, 0, 0.75), **QUICK)
    val = run.record["results"]["val"]
    assert val["score"] == pytest.approx(0.25 * val["top1"] + 0.75 * val["top5"])


def test_a_seed_fixes_the_head(digits, tmp_path):
    hashes = [
        train(digits, out=tmp_path / name, seed=seed, **QUICK).record["head_sha256"]
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_config_spells_out_every_value(digits, tmp_path):
    run = train(digits, out=tmp_path / "run", loss="neuralsort", **QUICK)
    config = yaml.safe_load((run.path / "config.yaml").read_text())
    assert None not in config.values()
    assert config["p_k"] == [0.5, 0, 0, 0, 0.5]
    assert config["m"] == 10  # 16 asked, 10 classes
    assert None not in run.record["loss"].values()
    assert TrainConfig.load(run.path / "config.yaml") == run.config


def test_three_classes_have_no_top5(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    three = feature_set(generator.normal(size=(60, 4)) + labels[:, None], labels, classes=3)
    results = train(three, out=tmp_path / "run", **QUICK).record["results"]
    assert results["test"]["top5"] is None
    assert 0 <= results["test"]["top1"] <= 1
    with pytest.raises(InputError, match="5 weights, for top-1 to top-5, but only 3 classes"):
        train(three, out=tmp_path / "five", loss="neuralsort", p_k=(0.5, 0, 0, 0, 0.5))
    assert not (tmp_path / "five").exists()
    assert train(three, out=tmp_path / "two", loss="neuralsort", **QUICK).config.p_k == (0.5, 0.5)


def test_a_class_without_training_rows_still_has_a_logit(tmp_path):
    labels = np.array([0, 1] * 30 + [0, 1, 2, 2] * 10)
    rows = feature_set(np.eye(3)[labels], labels, classes=3)
    run = train(rows, out=tmp_path / "run", epochs=20, learning_rate=0.1, device="cpu")
    assert run.head.num_classes == 3
    assert run.record["results"]["test"]["top1"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "neuralsrt"}, "--loss neuralsrt: .*did you mean 'neuralsort'"),
        ({"loss": "neuralsort", "p_k": (0.5, 0.4)}, "--loss neuralsort: p_k .*sum"),
        ({"loss": "neuralsort", "p_k": (1.5, -0.5)}, "--loss neuralsort: p_k"),
        ({"loss": "neuralsort", "m": 3}, "--loss neuralsort: .*5.*m"),
        (
            {"loss": "neuralsort", "inverse_temperature": 0.0},
            "--inverse-temperature: 0.0 found, expected a number above 0",
        ),
        ({"head": "mlpp"}, "--head: 'mlpp' is not known; expected one of linear"),
        ({"epochs": 0}, "--epochs: 0 found, expected a whole number above 0"),
        ({"learning_rate": float("nan")}, "--learning-rate: nan found"),
        ({"seed": 2**70}, "--seed: .* found, expected 0 to"),
        ({"device": "tpu"}, "--device: 'tpu' is not known"),
        ({"select": (0.0, 0.0)}, "--select: .* found, expected weights of 0 or more, one of them above 0"),
        ({"select": "top3"}, "--select: 'top3' found; did you mean top5 or top1"),
        ({"warmup": 5.0, "epochs": 3}, "--warmup: 5.0 epochs found, expected at most --epochs"),
        ({"gpu_memory": -1.0}, "--gpu-memory: -1.0 found, expected gigabytes"),
        ({"optimizer": "adamm"}, "--optimizer: 'adamm' found; did you mean adam"),
    ],
)
def test_settings_that_do_not_fit(digits, tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        train(digits, out=tmp_path / "run", **change)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_that_is_not_there(digits, tmp_path):
    with pytest.raises(InputError, match=r"--device cuda: torch .* finds no CUDA device"):
        train(digits, out=tmp_path / "run", device="cuda")


def test_a_loss_that_overflows_says_so(digits, tmp_path):
    with pytest.raises(InputError, match=r"the loss is (nan|inf) in epoch 1; lower --learning-rate"):
        train(digits, out=tmp_path / "run", learning_rate=1e37, epochs=1, device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(digits, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("headsmith.trainer.fitting.fit.Fit._score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(digits, out=tmp_path / "run", **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_kept_unless_told(digits, tmp_path):
    first = train(digits, out=tmp_path / "run", seed=1, **QUICK)
    with pytest.raises(InputError, match=r"run: exists already"):
        train(digits, out=tmp_path / "run", seed=2, **QUICK)
    assert Run.load(tmp_path / "run").record == first.record
    assert train(digits, out=tmp_path / "run", seed=2, overwrite=True, **QUICK).config.seed == 2


def test_a_wrong_setting_names_the_file_that_holds_it(digits, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("learning_rate: -1\n")
    with pytest.raises(InputError, match=r"settings\.yaml: --learning-rate: -1 found, expected a number above 0"):
        train(digits, out=tmp_path / "run", config=file)
    with pytest.raises(InputError, match=r"^--learning-rate: -2 found"):
        train(digits, out=tmp_path / "run", config=file, learning_rate=-2)

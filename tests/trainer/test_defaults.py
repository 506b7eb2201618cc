"""What a training does where nothing is said, beside scikit-learn."""

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from split_features import small

from headsmith import HeadClassifier
from headsmith.trainer import TrainConfig, train
from headsmith.trainer.criterion import KEYWORDS
from headsmith.trainer.fitting import fit_heads
from headsmith.trainer.losses import TopKCrossEntropy, topk_cross_entropy
from headsmith.trainer.resolved_settings import resolve


@pytest.mark.parametrize("loss", ["neuralsort", "odd_even", "bitonic", "splitter_selection", "sinkhorn"])
def test_defaults_learn_where_top5_is_nearly_free(digits, tmp_path, loss):
    """Ten classes, at most a tenth below scikit-learn: what the defaults of these losses failed at."""
    features, labels = digits.arrays("test")
    peer = LogisticRegression(max_iter=2000).fit(*digits.arrays("train")).score(features, labels)
    run = train(digits, out=tmp_path / "run", loss=loss, epochs=100, device="cpu")
    assert run.record.results.test.top1 > peer - 0.1
    assert run.record.warnings == []


@pytest.mark.parametrize(("loss", "load"), [("softmax", load_iris), ("neuralsort", load_wine)])
def test_defaults_learn_from_a_hundred_rows(tmp_path, loss, load):
    """In a third of their epochs, whose number is tested below; with all of them: `test_estimator.py`."""
    rows = small(load)
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(*rows.arrays("train"))
    run = train(rows, out=tmp_path / "run", loss=loss, epochs=1000, device="cpu")
    assert run.record.results.test.top1 > peer.score(*rows.arrays("test")) - 0.1


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


def test_a_large_split_has_100_epochs():
    found = resolve(TrainConfig(), num_classes=1000, features=torch.ones(1_281_167, 1))
    assert (found.epochs, found.patience, found.batch_size) == (100, 10, 512)


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


@pytest.mark.parametrize(("loss", "scale", "epochs"), [("softmax", 1e3, 300), ("neuralsort", 1e-3, 400)])
def test_defaults_learn_from_features_of_any_size(loss, scale, epochs):
    """In fewer epochs than they would have, which their rate must suffice for."""
    pixels, labels = load_digits(return_X_y=True)
    rows = [torch.from_numpy(pixels * scale).float(), torch.from_numpy(labels).long()]
    train_rows, val, test = ([part[start::3] for part in rows] for start in range(3))
    config = TrainConfig(loss=loss, epochs=epochs, device="cpu")
    [fitted] = fit_heads({"train": train_rows, "val": val, "test": test}, 10, [config])
    peer = make_pipeline(StandardScaler(), LogisticRegression()).fit(*map(np.asarray, train_rows))
    assert fitted.test.top1 > peer.score(*map(np.asarray, test)) - 0.03


def test_the_first_weights_of_a_fit_follow_the_size_of_its_features():
    pixels, labels = load_digits(return_X_y=True)
    labels, still = torch.from_numpy(labels).long(), TrainConfig(learning_rate=1e-30, epochs=1, device="cpu")
    usual, large = (
        fit_heads({"train": (torch.from_numpy(pixels * scale).float(), labels)}, 10, [still])[0].head.weight
        for scale in (0.05, 50.0)
    )
    sizes = np.sqrt(np.square(pixels[:: len(pixels) // 1000] * 50).mean(0))
    torch.testing.assert_close(large, usual * 2 / float(np.median(sizes[sizes > 0])), rtol=0.01, atol=0)


@pytest.mark.parametrize("name", sorted(set(KEYWORDS) - {"loss"}))
def test_the_trainer_and_the_losses_have_the_same_defaults(name):
    """The trainer starts from cross-entropy, the losses from NeuralSort; all else is one."""
    builds = (HeadClassifier, TopKCrossEntropy, topk_cross_entropy)
    found = {signature(build).parameters[name].default for build in builds}
    assert found == {next(field.default for field in fields(TrainConfig) if field.name == name)}

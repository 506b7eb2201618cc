"""Settings that no run can be trained with."""

import json
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, TrainConfig, train
from headsmith.trainer.resolved_settings import resolve
from headsmith.trainer.settings_file import read_settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 3}, "lr: is no setting; did you mean learning_rate"),
        ({"dropuot": 0.1}, "dropuot: is no setting; did you mean dropout"),
        ({"head": "linaer"}, "head: 'linaer' found, expected one of linear, .*did you mean linear"),
        ({"optimizer": "adm"}, "optimizer: 'adm' found, expected one of .*; did you mean adam"),
        ({"p_k": ".5,.5"}, "p_k: '.5,.5' found, expected weights of top-1, top-2, ... such as"),
        ({"p_k": 1}, "p_k: 1 found, expected weights of top-1, top-2, ... such as"),
        ({"p_k": [[1], [0.5, 0.5]]}, "p_k: .* found, expected weights of top-1, top-2, ... such as"),
        ({"select": 1}, "select: 1 found, expected one of p_k, top1, top5, or weights of top-1, top-2, ... such as"),
        ({"select": ".5,0,.5"}, "select: '.5,0,.5' found, expected one of p_k, top1, top5, or weights of top-1"),
        ({"select": ["top1"]}, r"select: \('top1',\) found, .*; did you mean top1"),
        ({"select": "top2"}, r"found, expected one of p_k, top1, top5, or weights.*; did you mean top5 or top1"),
        ({"epochs": np.bool_(True)}, "epochs: True found, expected a whole number above 0"),
        ({"epochs": np.float64(2)}, "epochs: 2.0 found, expected a whole number above 0"),
        ({"balanced": np.int64(1)}, "balanced: 1 found, expected true or false"),
        ({"learning_rate": np.array([0.1])}, r"learning_rate: .*0.1.* found, expected a number above 0"),
    ],
)
def test_settings_that_are_wrong(settings, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**settings)


def test_numbers_of_numpy_become_pythons(tmp_path):
    given = {
        "loss": np.str_("softsort"),
        "p_k": np.array([0.5, 0.5]),
        "learning_rate": np.float32(0.25),
        "balanced": np.bool_(True),
        "select": [np.float64(0.5), np.int64(1)],
        "epochs": np.int64(2),
        "batch_size": np.int32(64),
        "warmup": Fraction(1, 2),
    }
    expected = {
        "loss": "softsort",
        "p_k": (0.5, 0.5),
        "learning_rate": 0.25,
        "balanced": True,
        "select": (0.5, 1),
        "epochs": 2,
        "batch_size": 64,
        "warmup": 0.5,
    }
    config = TrainConfig(**given)
    found = {name: getattr(config, name) for name in expected}
    assert repr(found) == repr(expected)  # NumPy's numbers are equal to Python's, but are written otherwise
    config.save(tmp_path / "config.yaml")
    assert TrainConfig.load(tmp_path / "config.yaml") == config
    json.dumps(vars(config))


def test_lists_and_numbers_of_numpy_train(tmp_path):
    features, labels = load_iris(return_X_y=True)
    rows = FeatureSet.from_arrays(features, labels)
    own = {"p_k": (0.25, 0.75), "select": (0.5, 0.5), "epochs": 2, "learning_rate": 0.125}
    numpys = {
        "p_k": np.array([0.25, 0.75]),
        "select": [0.5, 0.5],
        "epochs": np.int64(2),
        "learning_rate": np.float32(0.125),
    }
    runs = [
        train(rows, out=tmp_path / name, loss="softsort", device="cpu", **settings)
        for name, settings in (("own", own), ("numpy", numpys))
    ]
    assert runs[1].config == runs[0].config
    assert torch.equal(runs[1].head.weight, runs[0].head.weight)


def test_an_unknown_setting_of_train(tmp_path):
    with pytest.raises(InputError, match="lr: no keyword of train; did you mean learning_rate"):
        train(FeatureSet.from_arrays([[0.0], [1.0]] * 10, [0, 1] * 10), out=tmp_path / "run", lr=3)


def test_a_warmup_longer_than_the_epochs_that_are_left_out():
    with pytest.raises(InputError, match=r"warmup: 500 epochs found, expected at most `epochs` \(100\)"):
        resolve(TrainConfig(warmup=500), num_classes=10, features=torch.ones(100_000, 1))
    small = resolve(TrainConfig(warmup=500), num_classes=10, features=torch.ones(1000, 1))  # two steps an epoch
    assert small.epochs == 1500


@pytest.mark.parametrize(
    "text",
    ["grids: [{loss: softmax}]", "final_seeds: [0, 1]", "learning_rate: [1e-3, 1e-2]", "p_k: [[1], [.5, .5]]"],
)
def test_a_sweep_file_is_sent_to_sweep(tmp_path, text):
    (tmp_path / "sweep.yaml").write_text(text)
    with pytest.raises(InputError, match=r"sweep\.yaml: .*`headsmith sweep` takes such a file"):
        read_settings(tmp_path / "sweep.yaml", TrainConfig)


def test_lists_that_are_one_value(tmp_path):
    (tmp_path / "settings.yaml").write_text("p_k: [.5, .5]\nselect: [1, 0]\n")
    assert read_settings(tmp_path / "settings.yaml", TrainConfig) == {"p_k": (0.5, 0.5), "select": (1, 0)}


def test_settings_are_copied_and_pickled():
    config = replace(TrainConfig(loss="softsort"), seed=3)
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loss: softsrt\n", "loss: 'softsrt' found, expected one of .*; did you mean softsort"),
        ("loss: SoftSort\n", "loss: 'SoftSort' found, expected one of .*; did you mean softsort"),
        ("start: nowhere\n", "start: 'nowhere' found, expected random"),
        ("start: ''\n", "start: '' found, expected random"),
        ("start: backbone\n", "start: backbone found, but the feature set does not say which backbone"),
        ("device: gpu\n", "device: 'gpu' found, expected auto, cpu or cuda"),
        ("seed: -1\n", "seed: -1 found, expected 0 to"),
        ("learning_rate: 1e999\n", "learning_rate: inf found, expected a number above 0"),
        ("learning_rate: .nan\n", "learning_rate: nan found, expected a number above 0"),
        ("loss: softsort\np_k: [.5, .6]\n", "p_k: sums to 1.1, expected 1"),
        ("loss: softsort\nm: 0\n", "m: 0 found, expected None or a whole number of at least 1"),
        ("loss: bitonic\ndistribution: cauchi\n", "distribution: 'cauchi' found, .*; did you mean cauchy"),
        ("preset: paper/imagenet1k\n", "preset: is for a sweep"),
        ("seed: " + "9" * 5000, "line 1: seed: 9999999999.*: not valid YAML"),
        ("loss: " + "x" * 5000, "loss: 'xxx[^ ]{40,60}xxx' found, expected one of"),
        ('{"loss": "softmax", "loss": "softsort"}', "line 1: .*'loss' is set twice"),
        ("", "nothing found, expected settings such as"),
    ],
)
def test_a_refused_setting_of_a_file_is_told_with_file_and_field(text, message, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    rows = FeatureSet.from_arrays(np.eye(60, 4, dtype=np.float32), np.arange(60) % 3)
    with pytest.raises(InputError, match=f"settings.yaml: {message}") as excinfo:
        train(rows, out=tmp_path / "run", config=path)
    assert len(str(excinfo.value)) < 700 + len(str(path))
    assert not (tmp_path / "run").exists()


def test_a_flag_that_is_wrong_is_not_the_files(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("loss: softmax\nstart: zeros\n")
    rows = FeatureSet.from_arrays(np.eye(60, 4, dtype=np.float32), np.arange(60) % 3)
    with pytest.raises(InputError, match="^start: 'nowhere' found"):
        train(rows, out=tmp_path / "run", config=path, start="nowhere")

"""Settings that no run can be trained with."""

import pickle
from dataclasses import replace

import pytest
import torch

from headsmith.models import InputError
from headsmith.trainer import FeatureSet, TrainConfig, train
from headsmith.trainer.config import read_settings
from headsmith.trainer.criterion import resolve


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 3}, "'lr' is no setting; expected some of .*; did you mean learning_rate"),
        ({"dropuot": 0.1}, "'dropuot' is no setting; .*did you mean dropout"),
        ({"head": "linaer"}, "--head: 'linaer' is not known; expected one of linear, .*did you mean linear"),
        ({"optimizer": "adm"}, "--optimizer: 'adm' found; did you mean adam"),
        ({"p_k": ".5,.5"}, "--p-k: '.5,.5' found, expected weights of top-1, top-2, ... such as"),
        ({"p_k": 1}, "--p-k: 1 found, expected weights of top-1, top-2, ... such as"),
        ({"select": 1}, "--select: 1 found, expected weights of top-1, top-2, ... such as"),
    ],
)
def test_settings_that_are_wrong(settings, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**settings)


def test_an_unknown_setting_of_train(tmp_path):
    with pytest.raises(InputError, match="'lr' is no setting; .*did you mean learning_rate"):
        train(FeatureSet.from_arrays([[0.0], [1.0]] * 10, [0, 1] * 10), out=tmp_path / "run", lr=3)


def test_a_warmup_longer_than_the_epochs_that_are_left_out():
    with pytest.raises(InputError, match=r"--warmup: 500 epochs found, expected at most --epochs \(100\)"):
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
        read_settings(tmp_path / "sweep.yaml")


def test_lists_that_are_one_value(tmp_path):
    (tmp_path / "settings.yaml").write_text("p_k: [.5, .5]\nselect: [1, 0]\n")
    assert read_settings(tmp_path / "settings.yaml") == {"p_k": (0.5, 0.5), "select": (1, 0)}


def test_settings_are_copied_and_pickled():
    config = replace(TrainConfig(loss="softsort"), seed=3)
    assert pickle.loads(pickle.dumps(config)) == config

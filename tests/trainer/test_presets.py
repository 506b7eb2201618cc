"""The paper's settings, as its authors' repository states them."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import TrainConfig
from headsmith.trainer.losses import METHODS
from headsmith.trainer.presets import load_preset, preset, preset_names

FIELDS = {field.name for field in dataclasses.fields(TrainConfig)}


OF_THE_PAPER = ["paper/cifar100", "paper/imagenet1k", "paper/imagenet21k"]


def test_our_own_and_the_three_of_the_paper():
    assert preset_names() == sorted([*OF_THE_PAPER, "default", "quick", "thorough"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("paper/imagenet1k", {"batch_size": 500, "epochs": 20, "m": 16, "learning_rate": 10**-4.5, "top1_mode": "sm"}),
        ("paper/imagenet21k", {"batch_size": 500, "epochs": 40, "m": 50, "learning_rate": 1e-4, "top1_mode": "sm"}),
        ("paper/cifar100", {"batch_size": 128, "epochs": 200, "m": None, "learning_rate": 1e-3, "top1_mode": "smce"}),
    ],
)
def test_what_all_losses_share(name, expected):
    for loss in load_preset(name).losses:
        found = preset(name, loss)
        assert {key: found[key] for key in expected} == pytest.approx(expected, nan_ok=False)
        assert found["optimizer"] == "adam"
        assert found["patience"] == found["epochs"]  # the authors never stop early


@pytest.mark.parametrize(
    ("name", "loss", "temperature"),
    [
        ("paper/imagenet1k", "bitonic", 1.0),
        ("paper/imagenet1k", "neuralsort", 0.5),
        ("paper/imagenet21k", "softsort", 0.5),
        ("paper/cifar100", "splitter_selection", 0.5),
        ("paper/cifar100", "neuralsort", 0.0625),
    ],
)
def test_inverse_temperatures(name, loss, temperature):
    assert preset(name, loss)["inverse_temperature"] == temperature


def test_networks_use_logistic_phi_with_lambda_one_half():
    for name in OF_THE_PAPER:
        for loss in ("bitonic", "splitter_selection"):
            found = preset(name, loss)
            assert (found["distribution"], found["art_lambda"]) == ("logistic_phi", 0.5)


@pytest.mark.parametrize("name", preset_names())
def test_every_setting_is_one_of_ours_and_has_a_source(name):
    found = load_preset(name)
    assert set(found.losses) <= set(METHODS)
    for loss in found.losses:
        assert set(preset(name, loss)) <= FIELDS
        assert TrainConfig(**preset(name, loss)).loss == loss
    assert all(source in found.source for source in ("ICML 2022", "difftopk")) or name not in OF_THE_PAPER
    assert found.source


def test_a_mistyped_name_gets_near_ones():
    with pytest.raises(InputError, match="'paper/imagenet' found, .*; did you mean paper/imagenet1k"):
        preset("paper/imagenet", "softmax")


def test_a_loss_that_the_paper_does_not_tune():
    with pytest.raises(
        InputError, match=r"loss: 'sinkhorn' found, but preset paper/imagenet1k has no settings for it, .*bitonic"
    ):
        preset("paper/imagenet1k", "sinkhorn")


def test_the_files_are_packaged():
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "headsmith.trainer.presets" in settings["packages"]
    assert settings["package-data"]["headsmith.trainer.presets"] == ["*.yaml", "paper/*.yaml"]

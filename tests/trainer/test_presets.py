"""The paper's settings, as its authors' repository states them."""

import dataclasses
import tomllib
from pathlib import Path

import difftopk
import numpy as np
import pytest
import torch
from sklearn.base import clone

from headsmith import HeadClassifier, sweep
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, TrainConfig, train
from headsmith.trainer.criterion import criterion
from headsmith.trainer.loss_defaults import options_read
from headsmith.trainer.losses import METHODS
from headsmith.trainer.presets import load_preset, preset, preset_names
from headsmith.trainer.unused_settings import unused_settings

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
        own = expected | ({"m": None} if loss == "smooth_topk" else {})  # it knows no pruning
        own = {key: value for key, value in own.items() if key not in {"m", "top1_mode"} - options_read(loss)}
        assert {key: found[key] for key in own} == pytest.approx(own, nan_ok=False)
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
        ("paper/cifar100", "smooth_topk", 1.0),
        ("paper/imagenet21k", "smooth_topk", 1.0),
    ],
)
def test_inverse_temperatures(name, loss, temperature):
    assert preset(name, loss)["inverse_temperature"] == temperature


def test_networks_use_logistic_phi_with_lambda_one_half():
    for name in OF_THE_PAPER:
        for loss in ("bitonic", "splitter_selection"):
            found = preset(name, loss)
            assert (found["distribution"], found["art_lambda"]) == ("logistic_phi", 0.5)


@pytest.mark.filterwarnings("ignore:<class 'difftopk:DeprecationWarning")
@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_smooth_topk_is_the_loss_that_the_authors_script_builds(name):
    """With all classes, K = 5 and tau = 1, where no fifth score leads by 34.5."""
    generator = torch.Generator().manual_seed(0)
    logits, labels = 3 * torch.randn(8, 100, generator=generator), torch.randint(100, (8,), generator=generator)
    expected = difftopk.SmoothHardTopKLoss(100, 5, tau=1)(logits.clone(), labels)
    torch.testing.assert_close(criterion(TrainConfig(**preset(name, "smooth_topk")))(logits, labels).mean(), expected)


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_the_tables_have_one_row_of_smooth_topk(name):
    """The authors' script takes the P_K whose last share is 1, of the six that they list."""
    assert [grid for grid in load_preset(name).grids if "smooth_topk" in grid["loss"]] == [
        {"loss": "smooth_topk", "p_k": [[0, 0, 0, 0, 1]]}
    ]


@pytest.mark.parametrize("name", preset_names())
def test_every_setting_is_one_of_ours_and_has_a_source(name):
    found = load_preset(name)
    assert set(found.losses) <= set(METHODS)
    for loss in found.losses:
        assert set(preset(name, loss)) <= FIELDS
        assert TrainConfig(**preset(name, loss)).loss == loss
    assert all(source in found.source for source in ("ICML 2022", "difftopk")) or name not in OF_THE_PAPER
    assert found.source


@pytest.mark.parametrize("name", preset_names())
def test_what_a_loss_does_not_read_is_left_out(name):
    for loss in load_preset(name).losses:
        found = preset(name, loss)
        assert unused_settings(TrainConfig(**found), found) == []
    assert "top1_mode" not in preset(name, "softmax")


@pytest.mark.filterwarnings("error")
def test_a_classifier_is_not_warned_of_what_nobody_gave():
    HeadClassifier(**preset("paper/imagenet1k", "smooth_topk") | {"epochs": 1}).fit(np.eye(6), range(6))


@pytest.mark.parametrize(
    ("classes", "p_k"),
    [(2, (1.0,)), (3, (0.5, 0.5)), (5, (0.5, 0, 0, 0.5)), (6, (0.2,) * 5)],
)
def test_a_preset_of_our_own_suits_few_classes(classes, p_k, tmp_path):
    rows, labels = np.eye(classes).repeat(4, axis=0), np.arange(classes).repeat(4)
    own = preset("default", "lapsum") | {"epochs": 1}
    features = FeatureSet.from_arrays(rows, labels)
    fitted = clone(HeadClassifier(**own)).fit(rows, labels).config_
    named = train(features, out=tmp_path / "named", preset="default", loss="lapsum", epochs=1, device="cpu").config
    given = train(features, out=tmp_path / "given", **own, device="cpu").config
    select = (0.5, 0, 0, 0, 0.5) if classes == 6 else "top1"
    assert [(config.p_k, config.select) for config in (fitted, named, given)] == 3 * [(p_k, select)]


def test_weights_of_a_user_stand_on_few_classes(tmp_path):
    own = (0.1, 0.1, 0.1, 0.1, 0.6)
    features = FeatureSet.from_arrays(np.eye(3).repeat(4, axis=0), np.arange(3).repeat(4))
    settings = preset("default", "lapsum") | {"p_k": own}
    with pytest.raises(InputError, match="p_k: 5 weights, .* only 3 classes; give fewer"):
        HeadClassifier(**settings).fit(np.eye(3), range(3))
    with pytest.raises(InputError, match="p_k: 5 weights, .* only 3 classes; give fewer"):
        train(features, out=tmp_path / "run", preset="default", loss="lapsum", p_k=own)
    with pytest.raises(InputError, match="^config: p_k: 5 weights, .* only 3 classes; give fewer"):
        sweep(features, out=tmp_path / "sweep", config={"preset": "default", "p_k": own, "loss": "lapsum"})


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

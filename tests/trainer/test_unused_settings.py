"""Settings that somebody chose and that change nothing."""

import pytest
import torch
import yaml

from headsmith.core.errors import InputError
from headsmith.trainer import TrainConfig
from headsmith.trainer.presets import preset
from headsmith.trainer.resolved_settings import resolve
from headsmith.trainer.unused_settings import refuse_unused

LBFGS = {
    "dropout": 0.1,
    "noise": 0.1,
    "balanced": True,
    "averaging": 0.9,
    "warmup": 1,
    "schedule": "cosine",
    "batch_size": 8,
    "momentum": 0.5,
}


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        *(({"optimizer": "lbfgs", name: value}, name, "`optimizer` lbfgs") for name, value in LBFGS.items()),
        ({"hidden": 64}, "hidden", "`head` mlp"),
        ({"norm": "layer"}, "norm", "`head` norm_linear"),
        ({"momentum": 0.5}, "momentum", "`optimizer` sgd"),
        ({"distribution": "cauchy"}, "distribution", "`loss` softmax"),
        ({"m": 4}, "m", "`loss` softmax"),
        ({"loss": "softsort", "distribution": "cauchy"}, "distribution", "splitter_selection"),
        ({"loss": "bitonic", "distribution": "cauchy", "art_lambda": 0.1}, "art_lambda", "logistic_phi"),
        ({"loss": "softsort", "p_k": (1.0,), "inverse_temperature": 2.0}, "inverse_temperature", "`p_k` of top-1"),
        ({"loss": "softsort", "top1_mode": "sort", "softmax_over": "classes"}, "softmax_over", "`top1_mode` sort"),
    ],
)
def test_what_changes_nothing_is_refused(settings, name, reason):
    with pytest.raises(InputError, match=rf"^{name}: .* found, but .*{reason}.*; leave it out$"):
        refuse_unused(TrainConfig(**settings), settings)


def test_what_is_read_is_not_refused():
    for settings in ({"optimizer": "sgd", "momentum": 0.5}, {"head": "mlp", "hidden": 8}, {"loss": "softsort", "m": 4}):
        refuse_unused(TrainConfig(**settings), settings)


def test_defaults_and_what_a_preset_carries_are_no_wish():
    refuse_unused(TrainConfig(momentum=0.9), {"momentum"})
    published = preset("paper/imagenet1k", "softmax")
    refuse_unused(TrainConfig(**published), {"loss"})


def test_the_settings_of_a_run_can_be_given_back(tmp_path):
    config = resolve(TrainConfig(**preset("paper/imagenet1k", "softmax")), num_classes=10, features=torch.ones(100, 1))
    config.save(tmp_path / "config.yaml")
    names = yaml.safe_load((tmp_path / "config.yaml").read_text())
    refuse_unused(config, names, {"epochs"})
    with pytest.raises(InputError, match="^m: 10 found"):
        refuse_unused(config, names, {"m"})

"""Settings that nothing can count, set aside or read are refused before anything is trained."""

from dataclasses import make_dataclass

import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import TrainConfig
from headsmith.trainer.sweep.grid import read_plan
from headsmith.trainer.sweep.tables import write_csv


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 10**20}, {"hidden": 10**11}, {"batch_size": 2**70}, {"start": 5}, {"device": torch.device("cpu")}],
)
def test_settings_beyond_use(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        TrainConfig(**wrong)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"preset": ["paper/cifar100"], "loss": "softmax"}, "preset"),
        ({"seed": range(10**9)}, "more than 100,000"),
        ({"seed": list(range(1000)), "dropout": [i / 1000 for i in range(1000)]}, "1,000,000 heads"),
        ({"grids": [{"seed": range(60_000)}, {"name": "b", "seed": range(60_000)}]}, "120,000 heads"),
        ({"loss": "softmax", "final_seeds": [-1]}, "final_seeds: -1"),
    ],
)
def test_sweeps_that_are_refused_before_training(config, said):
    with pytest.raises(InputError, match=said):
        read_plan(config, None, None)


def test_control_characters_of_a_grid_are_visible(tmp_path):
    row = make_dataclass("Row", ["group", "settings", "top1"])("a\x1b[31m", {"m": None}, 1.0)
    write_csv(tmp_path / "x.csv", [row])
    assert (tmp_path / "x.csv").read_text() == "group,m,top1\na\\x1b[31m,,1.0\n"

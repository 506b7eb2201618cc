"""Numbers that no file holds, and threads under which a machine stands still, are refused before any work."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.core.settings import MOST
from headsmith.trainer import FeatureSet
from headsmith.trainer.train_config import TrainConfig

HUGE = "99999999999999999999999"
NUMBERS = [field.name for field in dataclasses.fields(TrainConfig) if "int" in str(field.type) or field.type is float]


def said(*arguments):
    found = CliRunner().invoke(app, [*map(str, arguments)])
    assert found.exit_code == 2, found.output
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("headsmith: ")]
    return line


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    values = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    folder = tmp_path_factory.mktemp("features") / "set"
    FeatureSet.from_arrays(values, np.arange(60) % 3, out=folder)
    return folder


OPTIONS = {"noise-seed": "perturbed", "seed": "softmax", "m": "softsort", "samples": "perturbed", "epochs": "softmax"}
OPTIONS |= {"batch-size": "softmax", "patience": "softmax", "sinkhorn-iterations": "sinkhorn"}


@pytest.mark.parametrize(("option", "loss"), OPTIONS.items())
def test_a_number_that_no_file_holds_is_refused_before_a_training(features, option, loss):
    line = said("train", features, "--loss", loss, f"--{option}", HUGE, "--out", "run")
    assert line.startswith(f"headsmith: --{option}: {HUGE} found, expected ")
    assert not list(Path().iterdir())


@given(name=st.sampled_from(NUMBERS), value=st.integers(-(2**70), 2**70) | st.sampled_from([MOST - 1, MOST, 2**64]))
def test_what_is_not_refused_can_be_read_again(name, value, tmp_path_factory):
    try:
        config = TrainConfig(**{name: value})
    except InputError:
        return
    path = tmp_path_factory.getbasetemp() / "config.yaml"
    config.save(path)
    assert TrainConfig.load(path) == config


COUNTS = {"--threads": 9999, "--workers": 9999, "--jobs": 9999, "--batch-size": 99999999}
COMMANDS = {
    (name, flag)
    for name, command in get_command(app).commands.items()
    for param in command.params
    for flag in param.opts
    if flag in COUNTS and name != "train"
}


@pytest.mark.parametrize(("command", "flag"), sorted(COMMANDS))
def test_more_than_a_machine_can_do_is_refused(command, flag, tiny_bundle, tiny_run, image_folder):
    images = image_folder({"cat": 1, "dog": 1})
    words = {
        "evaluate": [tiny_bundle.path, "--data", images],
        "predict": [tiny_bundle.path, images],
        "verify": [tiny_bundle.path],
        "export": [tiny_run.path],
        "extract": [images],
        "finetune": [images],
        "benchmark": [images, "--backbones", "lite0"],
    }[command]
    out = [] if command in ("predict", "verify") else ["--out", "out"]
    line = said(command, *words, *out, flag, COUNTS[flag])
    assert line.startswith(f"headsmith: {flag}: {COUNTS[flag]} found, expected at ")
    assert not list(Path().iterdir())

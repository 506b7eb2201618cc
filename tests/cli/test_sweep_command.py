"""`headsmith sweep` and presets as a user meets them."""

import json
import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.export import export_classifier
from headsmith.show_sweep import show_sweep
from headsmith.trainer import FeatureSet, Run, train
from headsmith.trainer.presets import preset, preset_text
from headsmith.trainer.sweep import sweep

runner = CliRunner()


def headsmith(*arguments, width=200):
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": str(width)})


@pytest.fixture(scope="module")
def features(tiny_run: Run):
    return tiny_run.record.features.path


def test_from_a_file_to_an_exported_classifier(features, tmp_path):
    (tmp_path / "sweep.yaml").write_text(
        "epochs: 20\nseed: [0, 1]\nloss: [softmax, softsort]\np_k: [[1]]\nlearning_rate: [1e-2, 5e-2]\n"
    )
    out = tmp_path / "sweep"
    shown = headsmith("sweep", features, "--config", tmp_path / "sweep.yaml", "--out", out, "--device", "cpu")
    assert shown.exit_code == 0, shown.output
    for words in ("8 heads in 2 banks", "softsort", "accuracies in %", "McNemar", "sweep.csv", "sweep.png"):
        assert words in shown.output
    bundle = export_classifier(out / "best", out=tmp_path / "bundle")
    assert bundle.class_names == FeatureSet.load(features).class_names


GRIDS = """
epochs: 1
weight_decay: [0, 1e-4]
final_seeds: [0, 1]
grids:
  - {loss: softmax, learning_rate: [1e-2, 5e-2], label_smoothing: [0, .1]}
  - {name: cross-entropy over the 16 hardest, loss: softsort, p_k: [[1]]}
  - {loss: splitter_selection, p_k: [[.5, .5], [.25, .75]], inverse_temperature: [.25, .5]}
"""


@pytest.mark.parametrize(("width", "headings"), [(80, ["setting"]), (160, ["p_k", "1/tau", "smooth", "lr", "decay"])])
def test_no_word_of_a_table_is_broken(features, tmp_path, monkeypatch, width, headings):
    (tmp_path / "sweep.yaml").write_text(GRIDS)
    found, screen = sweep(features, out=tmp_path / "sweep", config=tmp_path / "sweep.yaml", device="cpu"), StringIO()
    monkeypatch.setattr("headsmith.show_sweep.console", Console(file=screen, width=width, soft_wrap=True))
    show_sweep(found, as_json=False)
    settings, groups = screen.getvalue().split("Settings, ")[1].split("What validation chose")
    assert all(len(line) <= width for line in settings.splitlines())
    assert "…" not in settings + groups
    for row in found.settings:
        words = [*row.group.split(), f"{row.val_top1_mean:.1f}", f"{row.val_top5_mean:.1f}"]
        words += {"0.5 0.5": [".5,.5"], "0.25 0.75": [".25,.75"]}.get(row.settings["p_k"], [])
        assert all(re.search(rf"(?<=[ =]){re.escape(word)}(?=[ ±])", settings) for word in words), words
    assert all(f" {heading} " in settings for heading in headings)
    (winner,) = (line for line in settings.splitlines() if line.startswith(" *"))
    assert found.record.winner.group.split()[0] in winner


def test_the_order_of_settings_is_told(features, tmp_path, monkeypatch):
    config = {"loss": "softmax", "learning_rate": [0.01, 0.02], "epochs": 1, "device": "cpu"}
    found = sweep(features, out=tmp_path / "sweep", config=config)
    first, second = found.settings

    def told(*rows):
        screen = StringIO()
        monkeypatch.setattr("headsmith.show_sweep.console", Console(file=screen, width=200))
        show_sweep(replace(found, record=replace(found.record, settings=list(rows))), as_json=False)
        return screen.getvalue()

    assert first.chosen == "winner"
    assert "Settings, the best on validation first (*: the winner);" in told(first, second)
    lucky = replace(second, val_score_mean=first.val_score_mean + 1)
    assert "Settings, the winner (*) over 3 seeds first, then the best;" in told(replace(first, seeds=3), lucky)


def test_json(features, tmp_path):
    (tmp_path / "sweep.yaml").write_text("epochs: 2\nlearning_rate: [1e-2, 1e-1]\n")
    shown = headsmith("sweep", features, "--config", tmp_path / "sweep.yaml", "--out", tmp_path / "sweep", "--json")
    record = json.loads(shown.stdout)
    assert record == json.loads((tmp_path / "sweep" / "sweep.json").read_text())


def test_a_bad_file_is_one_line_and_status_2(features, tmp_path):
    (tmp_path / "sweep.yaml").write_text("lerning_rate: [1e-2]\n")
    shown = headsmith("sweep", features, "--config", tmp_path / "sweep.yaml", "--out", tmp_path / "sweep")
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1
    assert "lerning_rate: is no setting" in shown.stderr
    assert "did you mean learning_rate" in shown.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.yaml"]


@pytest.mark.parametrize("loss", ["bitonic", "smooth_topk"])
def test_flags_win_over_a_preset(features, tmp_path, loss):
    arguments = ("--preset", "paper/cifar100", "--loss", loss, "--epochs", 2, "--device", "cpu")
    shown = headsmith("train", features, "--out", tmp_path / "run", *arguments)
    assert shown.exit_code == 4, shown.output  # after two epochs the head guesses
    config, published = Run.load(tmp_path / "run").config, preset("paper/cifar100", loss)
    assert config.epochs == 2
    for name in {"learning_rate", "batch_size", "inverse_temperature", "top1_mode", "p_k", "patience"} & {*published}:
        expected = min(published[name], 96) if name == "batch_size" else published[name]
        assert getattr(config, name) == pytest.approx(expected)


def test_a_settings_file_wins_over_a_preset_and_names_its_loss(features, tmp_path):
    (tmp_path / "settings.yaml").write_text("loss: softsort\nepochs: 3\nm: 5\n")
    run = train(
        features,
        out=tmp_path / "run",
        preset="paper/imagenet1k",
        config=tmp_path / "settings.yaml",
        epochs=1,
        device="cpu",
    )
    assert (run.config.loss, run.config.epochs, run.config.m) == ("softsort", 1, 5)
    assert run.config.inverse_temperature == 0.5
    assert run.config.learning_rate == pytest.approx(10**-4.5)


def test_a_mistyped_preset(features, tmp_path):
    shown = headsmith("train", features, "--out", tmp_path / "run", "--preset", "paper/imagnet1k")
    assert shown.exit_code == 2
    assert "did you mean paper/imagenet1k" in shown.stderr


@pytest.mark.parametrize("classes", [2, 7])
def test_a_sweep_of_noise_ends_with_status_4(tmp_path, classes):
    random = np.random.default_rng(0)
    labels = np.arange(420) % classes
    FeatureSet.from_arrays(random.normal(size=(420, 8)), labels, out=tmp_path / "noise")
    (tmp_path / "sweep.yaml").write_text("epochs: 2\nlearning_rate: [1e-3, 1e-2]\n")
    asked = ("--config", tmp_path / "sweep.yaml", "--out", tmp_path / "sweep", "--device", "cpu")
    shown = headsmith("sweep", tmp_path / "noise", *asked)
    assert shown.exit_code == 4, shown.output
    assert "cannot be told from guessing" in " ".join(shown.output.split())


@pytest.mark.parametrize("asked", [("--json", "--show-preset", "quick"), ("--show-preset", "quick", "--json")])
def test_a_preset_as_json(asked):
    assert json.loads(headsmith("sweep", *asked).stdout) == yaml.safe_load(preset_text("quick"))
    assert headsmith("sweep", "--show-preset", "quick").stdout == preset_text("quick")


def test_an_unknown_preset_to_show_names_the_option_that_asked():
    found = CliRunner().invoke(app, ["sweep", "--show-preset", "defualt"])
    assert found.exit_code == 2
    assert found.stderr.startswith("headsmith: --show-preset: 'defualt' found, expected one of default, ")

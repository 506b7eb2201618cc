"""A sweep without a file, and the loss that `train` chooses by one."""

from dataclasses import replace

import pytest
import yaml

from headsmith import HeadClassifier, InputError, sweep, train
from headsmith.trainer import Run, TrainConfig
from headsmith.trainer.feature_scale import for_size
from headsmith.trainer.presets import load_preset, preset_names, preset_text
from headsmith.trainer.sweep import sweeping
from headsmith.trainer.sweep.grid import read_plan

OWN = ["quick", "default", "thorough"]


@pytest.mark.parametrize("name", OWN)
def test_the_plan_of_a_preset(name):
    plan = read_plan(None, None if name == "default" else name, "cpu")
    groups = {trial.group for trial in plan.trials}
    assert "softmax" in groups
    assert {"lapsum", "dftopk"} <= groups
    assert plan.rungs == load_preset(name).rungs
    assert {trial.config.select for trial in plan.trials} == {(0.5, 0, 0, 0, 0.5)}
    assert yaml.safe_load(preset_text(name))["rungs"] == plan.rungs


@pytest.mark.parametrize("name", preset_names())
def test_what_is_printed_of_a_preset_is_a_sweep_file(name, tmp_path):
    (tmp_path / "mine.yaml").write_text(preset_text(name))
    own, printed = read_plan(None, name, "cpu"), read_plan(tmp_path / "mine.yaml", None, "cpu")
    assert own.request("features") == printed.request("features")
    for field in ("trials", "final_seeds", "rungs", "unit_features"):
        assert getattr(own, field) == getattr(printed, field)
    assert replace(printed.preset, name=name) == own.preset
    assert read_plan(yaml.safe_load(preset_text(name)), None, "cpu").trials == own.trials


def test_a_preset_that_is_written_out_can_be_edited(tmp_path):
    text = preset_text("quick").replace("{learning_rate: 3.0e-3, label_smoothing: 0.1}", "{label_smoothing: 0.1}")
    (tmp_path / "mine.yaml").write_text(text.replace("rungs: [6, 24]", "rungs: [2]") + "seed: [1, 2]\n")
    plan, whole = (read_plan(given, None, "cpu") for given in (tmp_path / "mine.yaml", {"preset": "quick"}))
    assert (plan.rungs, len(plan.trials)) == ([2], 2 * len(whole.trials))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("losses:", "loses:"), r"mine\.yaml: losses: "),
        (("rungs: [6, 24]", "rungs: six"), r"mine\.yaml: rungs: "),
        (("head: linear", "haed: linear"), r"mine\.yaml: haed: is no setting; did you mean head"),
        (("rungs: [6, 24]", "rungs: [3, 2]"), r"mine\.yaml: rungs: \[3, 2\] found, expected epochs that increase"),
        (("rungs: [6, 24]", "rungs: [3, 3]"), r"mine\.yaml: rungs: \[3, 3\] found, expected epochs that increase"),
        (("rungs: [6, 24]", "rungs: [0, 3]"), r"mine\.yaml: rungs: \[0, 3\] found, expected epochs that increase"),
        (("rungs: [6, 24]", "rungs: []"), r"mine\.yaml: rungs: \[\] found, expected epochs that increase, .*; leave"),
        (("rungs: [6, 24]", "rungs: [6, 9999999999]"), r"mine\.yaml: rungs: epochs: 9999999999 found, expected "),
        (("grids:", "grid:"), r"mine\.yaml: grids: missing, .*; start from what `headsmith sweep --show-preset "),
        (
            ("loss: dftopk", "loss: neuralsort"),
            r"mine\.yaml: loss: 'neuralsort' found, .*; add a line there, .* `neuralsort: \{learning_rate: 0.01\}`",
        ),
        (("rungs:", "preset: default\nrungs:"), r"mine\.yaml: source: found together with the name of a preset"),
    ],
)
def test_what_is_wrong_in_a_preset_that_is_written_out(change, said, tmp_path):
    (tmp_path / "mine.yaml").write_text(preset_text("quick").replace(*change))
    with pytest.raises(InputError, match=said):
        read_plan(tmp_path / "mine.yaml", None, "cpu")


def test_prose_may_be_left_out_of_a_preset_that_is_written_out():
    values = {
        key: value for key, value in yaml.safe_load(preset_text("quick")).items() if key not in ("source", "note")
    }
    assert read_plan(values, None, "cpu").trials == read_plan(None, "quick", "cpu").trials


def test_the_remedy_for_a_loss_without_a_line_works():
    values = yaml.safe_load(preset_text("quick"))
    values["grids"][-1]["loss"] = "neuralsort"
    values["losses"]["neuralsort"] = {"learning_rate": 0.01}
    assert "neuralsort" in {trial.group for trial in read_plan(values, None, "cpu").trials}


def test_a_run_does_not_take_a_preset_that_is_written_out(tiny_run: Run, tmp_path):
    (tmp_path / "mine.yaml").write_text(preset_text("quick"))
    with pytest.raises(InputError, match="source: is for a sweep; `headsmith sweep` takes such a file"):
        train(tiny_run.record.features.path, out=tmp_path / "run", config=tmp_path / "mine.yaml")


def test_rates_of_the_user_stand():
    plan = read_plan({"preset": "quick", "learning_rate": 0.5}, None, "cpu")
    assert not plan.unit_features
    assert {trial.config.learning_rate for trial in plan.trials} == {0.5}


def test_epochs_of_the_user_end_the_rungs():
    plan = read_plan({"preset": "quick", "epochs": 3}, None, "cpu")
    assert plan.rungs == []
    assert {trial.config.epochs for trial in plan.trials} == {3}


def test_rates_follow_the_size_of_features():
    assert for_size(1.0, 3e-3, 0.1) == (3e-3, 0.1)
    assert for_size(0.5, 3e-3, 0.1) == (6e-3, 0.05)


def test_every_rung_keeps_a_third_and_the_best_of_every_group(tiny_run: Run, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "LEAST_STEPS", 1)
    found = sweep(tiny_run.record.features.path, out=tmp_path / "sweep", preset="quick", device="cpu")
    by_epochs: dict[int, list[str]] = {}
    for row in found.settings:
        by_epochs.setdefault(row.settings["epochs"], []).append(row.group)
    first, last = load_preset("quick").rungs
    assert len(by_epochs[first]) == 4 + 4 + 4
    assert 4 <= len(by_epochs[last]) <= 4 + 2
    assert set(by_epochs[last]) == {"softmax", "lapsum", "dftopk"}


def test_auto_is_the_winner_of_the_quick_sweep(tiny_run: Run, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "LEAST_STEPS", 1)
    run = train(tiny_run.record.features.path, out=tmp_path / "run", loss="auto", device="cpu", seed=3)
    winner = Run.load(tmp_path / "run.sweep" / "best")
    assert run.config == winner.config
    assert run.config.seed == 3
    assert run.record.head_sha256 == winner.record.head_sha256
    with pytest.raises(InputError, match="exists"):
        train(tiny_run.record.features.path, out=tmp_path / "run", loss="auto", device="cpu")


def test_auto_is_not_offered_where_it_is_refused():
    for ask in (
        lambda: HeadClassifier(loss="lapsums").fit([[0.0], [1.0]], [0, 1]),
        lambda: read_plan({"loss": "lapsums"}, None, "cpu"),
        lambda: read_plan({"grids": [{"loss": ["softmax", "lapsums"]}]}, None, "cpu"),
    ):
        with pytest.raises(
            InputError, match="loss: 'lapsums' found, expected one of softmax, .*noised_topk; did"
        ) as told:
            ask()
        assert "auto" not in str(told.value)


def test_auto_is_refused_where_one_head_is_trained(tiny_run: Run, tmp_path):
    with pytest.raises(InputError, match="auto found, which `train` alone takes"):
        TrainConfig(loss="auto")
    with pytest.raises(InputError, match="auto found"):
        HeadClassifier(loss="auto").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="tensorboard: .* found, but .*auto"):
        train(tiny_run.record.features.path, out=tmp_path / "run", loss="auto", tensorboard=tmp_path / "board")

"""What a sweep file asks for."""

from collections import Counter

import numpy as np
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.trainer import TrainConfig
from headsmith.trainer.losses import METHODS
from headsmith.trainer.presets import preset
from headsmith.trainer.resolved_settings import resolve
from headsmith.trainer.sweep.grid import read_plan
from headsmith.trainer.unused_settings import unused, without_unused


def trials_of(config, **keywords):
    return read_plan(config, keywords.get("preset"), keywords.get("device")).trials


def write(folder, text):
    path = folder / "sweep.yaml"
    path.write_text(text)
    return path


def test_the_grid_is_the_product(tmp_path):
    found = trials_of(write(tmp_path, "loss: [neuralsort, bitonic]\nlearning_rate: [.001, .01, .1]\nseed: [0, 1]\n"))
    assert len(found) == 2 * 3 * 2
    assert {(trial.group, trial.config.learning_rate, trial.config.seed) for trial in found} == {
        (loss, rate, seed) for loss in ("neuralsort", "bitonic") for rate in (0.001, 0.01, 0.1) for seed in (0, 1)
    }


def test_a_list_of_numbers_is_one_p_k_and_a_list_of_lists_an_axis():
    one = trials_of({"loss": "neuralsort", "p_k": [0.5, 0.5]})
    three = trials_of({"loss": "neuralsort", "p_k": [[0.5, 0.5], [1], None]})
    assert [trial.config.p_k for trial in one] == [(0.5, 0.5)]
    assert [trial.config.p_k for trial in three] == [(0.5, 0.5), (1,), None]


def test_null_is_a_value_like_others():
    assert [trial.config.m for trial in trials_of({"loss": "neuralsort", "m": [8, None]})] == [8, None]


def test_numbers_that_yaml_takes_for_words(tmp_path):
    found = trials_of(write(tmp_path, "learning_rate: [1e-3, 1E-2]\n"))
    assert [trial.config.learning_rate for trial in found] == [0.001, 0.01]


def test_cross_entropy_is_not_multiplied_by_what_it_does_not_read():
    grid = {
        "loss": ["softmax", "neuralsort"],
        "m": [8, 16],
        "inverse_temperature": [0.5, 1.0],
        "p_k": [[0.5, 0.5], [0.2, 0.8]],
        "label_smoothing": [0.0, 0.1],
    }
    assert Counter(trial.group for trial in trials_of(grid)) == {"softmax": 2, "neuralsort": 16}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"loss": "neuralsort"}, {"distribution", "art_lambda"}),
        ({"loss": "bitonic"}, set()),
        ({"loss": "bitonic", "distribution": "cauchy"}, {"art_lambda"}),
        ({"loss": "bitonic", "top1_mode": "sort"}, {"softmax_over"}),
        ({"loss": "bitonic", "p_k": (1.0,)}, {"inverse_temperature", "distribution", "art_lambda"}),
        ({"loss": "bitonic", "p_k": (1.0,), "top1_mode": "sort"}, {"softmax_over"}),
    ],
)
def test_what_a_loss_does_not_read(change, expected):
    asked = {"softmax_over", "top1_mode", "p_k", "m", "inverse_temperature", "distribution", "art_lambda", "floor"}
    assert unused(TrainConfig(**change)).keys() & asked == expected


@pytest.mark.parametrize(
    ("setting", "losses"),
    [
        ("softsort_power", {"softsort"}),
        ("sinkhorn_iterations", {"sinkhorn", "optimal_transport"}),
        ("samples", {"perturbed", "noised_topk", "imbalanced_noised_topk"}),
        ("noise_seed", {"perturbed", "noised_topk", "imbalanced_noised_topk"}),
        ("hinge", {"topk_hinge"}),
        ("comp_sum_q", {"comp_sum"}),
    ],
)
def test_what_only_some_losses_read(setting, losses):
    assert {loss for loss in METHODS if setting not in unused(TrainConfig(loss=loss))} == losses


def test_what_heads_and_optimisers_do_not_read():
    assert unused(TrainConfig()).keys() >= {"norm", "hidden", "momentum"}
    assert "norm" not in unused(TrainConfig(head="norm_linear"))
    assert "hidden" not in unused(TrainConfig(head="mlp"))
    assert "momentum" not in unused(TrainConfig(optimizer="sgd"))


def test_lbfgs_is_not_multiplied_by_what_only_steps_on_batches_read():
    grid = {"optimizer": ["lbfgs", "adam"], "dropout": [0, 0.1], "balanced": [True, False], "batch_size": [64, 512]}
    assert Counter(trial.config.optimizer for trial in trials_of(grid)) == {"lbfgs": 1, "adam": 8}


def test_the_settings_of_a_run_are_a_grid_of_one(tmp_path):
    config = resolve(
        TrainConfig(loss="softsort", p_k=(0.5, 0.5), device="cpu"),
        num_classes=10,
        features=torch.ones(100, 1),
    )
    config.save(tmp_path / "config.yaml")
    assert [trial.config for trial in trials_of(tmp_path / "config.yaml")] == [without_unused(config)]


def test_axes_of_numpys_and_ranges_are_those_of_lists():
    axes = {"learning_rate": [0.001, 0.01, 0.1], "epochs": [2, 4], "balanced": [False, True], "seed": [0, 1, 2]}
    weights = {"p_k": [[0.5, 0.5], [0.25, 0.75]], "select": [0.5, 0.5]}
    lists = {"loss": ["neuralsort"], **axes, **weights, "final_seeds": [3, 4]}
    arrays = {
        "loss": np.array(["neuralsort"]),
        "learning_rate": np.array(axes["learning_rate"]),
        "epochs": np.arange(2, 5, 2),
        "balanced": [np.bool_(False), np.bool_(True)],
        "seed": range(3),
        "p_k": np.array(weights["p_k"]),
        "select": np.array(weights["select"]),
        "final_seeds": np.arange(3, 5),
    }
    found, expected = read_plan(arrays, None, None), read_plan(lists, None, None)
    assert repr(found) == repr(expected)
    assert len(found.trials) == 3 * 2 * 2 * 3 * 2
    assert [trial.config.learning_rate for trial in trials_of({"learning_rate": np.logspace(-3, -1, 3)})] == [
        pytest.approx(rate) for rate in axes["learning_rate"]
    ]


def test_several_grids_share_what_stands_beside_them():
    found = trials_of(
        {
            "epochs": 3,
            "seed": [0, 1],
            "grids": [{"loss": "softmax"}, {"name": "hard", "loss": "softsort", "p_k": [[1]], "epochs": 4}],
        }
    )
    assert [(trial.group, trial.config.epochs, trial.config.seed) for trial in found] == [
        ("softmax", 3, 0),
        ("softmax", 3, 1),
        ("hard", 4, 0),
        ("hard", 4, 1),
    ]


def test_epochs_are_chosen_by_top1_unless_said_otherwise():
    assert {trial.config.select for trial in trials_of({"loss": list(METHODS)})} == {"top1"}
    assert {trial.config.select for trial in trials_of({"select": [0.5, 0, 0, 0, 0.5], "seed": [0, 1]})} == {
        (0.5, 0, 0, 0, 0.5)
    }


def test_a_preset_lies_under_the_file():
    found = trials_of({"preset": "paper/imagenet1k", "loss": ["softmax", "bitonic"], "m": 32})
    for trial in found:
        expected = preset("paper/imagenet1k", trial.config.loss)
        assert trial.config.learning_rate == expected["learning_rate"]
        assert trial.config.epochs == 20
    assert found[1].config.m == 32
    assert found[1].config.p_k == (0.2,) * 5


def test_a_preset_alone_is_the_papers_table():
    found = trials_of({"seed": [0, 1]}, preset="paper/imagenet1k", device="cpu")
    assert len(found) == 2 * (1 + 1 + 1 + 4 * 5)
    assert {trial.config.m for trial in found if trial.config.loss == "smooth_topk"} == {None}
    assert {trial.config.epochs for trial in found} == {20}
    assert {trial.config.device for trial in found} == {"cpu"}
    assert {trial.config.p_k for trial in trials_of({"p_k": [0.3, 0.7]}, preset="paper/cifar100")} == {None, (0.3, 0.7)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr: .1\n", "sweep.yaml: lr: is no setting; did you mean learning_rate"),
        ("lerning_rate: .1\n", "sweep.yaml: lerning_rate: is no setting; did you mean learning_rate"),
        ("grids: [{loss: softmax, sed: 1}]\n", "sweep.yaml: sed: is no setting; did you mean seed"),
        ("[]\n", "sweep.yaml: an empty list found, expected settings"),
        ("- loss: softmax\n", r"sweep.yaml: \[.*\] found, .*; put a list of grids under `grids:`"),
        ("", "sweep.yaml: no setting found; give at least one"),
        ("learning_rate: []\n", "sweep.yaml: learning_rate: an empty list found"),
        ("p_k: []\n", "sweep.yaml: p_k: an empty list found"),
        ("grids: []\n", "sweep.yaml: grids: an empty list found"),
        ("grids: 3\n", "sweep.yaml: grids: 3 found, expected a list of settings"),
        ("learning_rate: [.1, fast]\n", "sweep.yaml: learning_rate: 'fast' found, expected a number or null"),
        ("epochs: 1.5\n", "sweep.yaml: epochs: 1.5 found, expected a whole number"),
        ("epochs: true\n", "sweep.yaml: epochs: True found, expected a whole number"),
        ("balanced: 1\n", "sweep.yaml: balanced: 1 found, expected true or false"),
        ("loss: [softmax, 3]\n", "sweep.yaml: loss: 3 found, expected a word"),
        ("p_k: .5\n", "sweep.yaml: p_k: 0.5 found, expected a list of numbers or null"),
        ("p_k: [[.5, x]]\n", "sweep.yaml: p_k: .*'x'.* found, expected a list of numbers or null"),
        ("seed: [0, 1, 0]\n", "sweep.yaml: seed: 0 found more than once"),
        ("final_seeds: [2, 2]\n", "sweep.yaml: final_seeds: 2 found more than once"),
        ("final_seeds: []\n", "sweep.yaml: final_seeds: an empty list found"),
        ("final_seeds: five\n", "sweep.yaml: final_seeds: 'five' found, expected a whole number"),
        ("epochs: [0, 3]\n", "sweep.yaml: epochs: 0 found, expected a whole number above 0"),
        ("select: [top1, top5]\n", "sweep.yaml: select: 'top1' and 'top5' found, expected one"),
        ("grids: [{device: cpu}]\n", "sweep.yaml: device: is the same for the whole sweep; move it out of grids"),
        ("grids: [{name: 3}]\n", "sweep.yaml: name: 3 found, expected a word"),
        (
            "grids: [{name: x, loss: softsort}, {name: x, loss: softmax}]\n",
            "sweep.yaml: name: 'x' found for grids of softsort and of softmax; give each its own name",
        ),
        (
            "grids: [{name: softmax, loss: softsort}, {loss: softmax}]\n",
            "sweep.yaml: name: 'softmax' is a loss that this grid does not train",
        ),
        (
            "grids: [{loss: bitonic}, {name: bitonic, loss: [bitonic, softsort]}]\n",
            "sweep.yaml: name: 'bitonic' found for grids of bitonic and of bitonic and softsort",
        ),
        (
            "grids: [{name: all, loss: [softmax, softsort]}]\n",
            "sweep.yaml: name: 'all' is of softmax and softsort; give softmax a grid of its own",
        ),
        ('grids: [{name: "a\\nb"}]\n', r"sweep.yaml: name: 'a\\nb' found, expected a word or a text on one line"),
        ('grids: [{name: "\\e[31m"}]\n', r"sweep.yaml: name: .* found, expected a word or a text on one line"),
        ("preset: paper/imagenet\n", "sweep.yaml: preset: 'paper/imagenet' found, .*; did you mean paper/imagenet1k"),
        ("loss: [softmax\n", "sweep.yaml: line 2: not valid YAML"),
    ],
)
def test_files_that_are_wrong(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        trials_of(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_neither_a_file_nor_a_preset():
    assert trials_of(None) == trials_of(None, preset="default")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"gone\.yaml: not found; expected a sweep file"):
        trials_of(tmp_path / "gone.yaml")


def test_grids_of_one_name_and_one_loss_are_one_group():
    grids = [{"name": "x", "loss": "softsort", "m": 8}, {"name": "x", "loss": "softsort", "m": 16}]
    assert [trial.group for trial in trials_of({"grids": grids})] == ["x", "x"]
    assert {trial.group for trial in trials_of({"grids": [{"name": "y", "loss": ["bitonic", "softsort"]}]})} == {"y"}

"""What validation chooses, and which warnings a sweep has."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from headsmith.core.coded_warnings import CodedWarning
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, TrainConfig
from headsmith.trainer.run_record import InitializationRecord
from headsmith.trainer.scores import EpochScores, SplitScores
from headsmith.trainer.sweep.bank_grouping import Trained
from headsmith.trainer.sweep.comparison import Group, SweepComparison
from headsmith.trainer.sweep.grid import Trial
from headsmith.trainer.sweep.model_selection import baseline_of, chosen_of, settings_of
from headsmith.trainer.sweep.paired_tests import adjusted, paired_tests
from headsmith.trainer.sweep.sweep_record import PairedTest
from headsmith.trainer.sweep.sweep_warnings import sweep_warnings
from headsmith.trainer.sweep.tables import followers, setting_rows


def trained(score, group=None, *, val_loss=1.0, train_loss=1.0, diverged=False, select="top1", **settings) -> Trained:
    config = TrainConfig(device="cpu", select=select, **settings)
    return Trained(
        trial=Trial(group or config.loss, config),
        bank=0,
        file=Path(f"{score}-{settings}.safetensors"),
        config=config,
        best=EpochScores(1, train_loss, 0.0),
        history=[],
        val=SplitScores(100, val_loss, score, None, score),
        seconds=1.0,
        diverged=diverged,
        placement="in memory",
        device="cpu",
        initialization=InitializationRecord("zeros"),
    )


def comparison(heads, train=0.5, tested=True, **tests) -> SweepComparison:
    chosen = chosen_of(settings_of(heads))
    baseline = baseline_of(chosen)
    groups = [
        Group(setting, [], torch.empty(0), tests if baseline and setting is not baseline else {}) for setting in chosen
    ]
    return SweepComparison(groups, baseline.group if baseline else None, tested, scores(train))


def scores(top1):
    return SplitScores(100, 1.0, top1, None, top1)


def rows(score):
    """Ten classes; the first, the most frequent in training, has so many of a hundred validation rows."""
    labels = {"train": np.arange(11) % 10, "val": np.where(np.arange(100) < 100 * score, 0, 1 + np.arange(100) % 9)}
    labels["test"] = labels["val"]
    return FeatureSet.from_arrays({name: np.eye(10)[one] for name, one in labels.items()}, labels)


BALANCED = rows(0.1)


def warnings(heads, train=0.5, asked=None, tested=True, **tests):
    trials = [head.trial for head in heads] if asked is None else asked
    return sweep_warnings(heads, settings_of(heads), comparison(heads, train, tested, **tests), trials, BALANCED)


def codes(heads, train=0.5, **tests):
    return [warning.code for warning in warnings(heads, train, **tests)]


def pair(won, lost, p):
    return PairedTest(won, lost, p, p)


def test_the_mean_over_seeds_chooses_not_the_luckiest_head():
    lucky = [trained(score, learning_rate=0.1, seed=seed) for seed, score in enumerate((0.9, 0.5))]
    steady = [trained(score, learning_rate=0.2, seed=seed) for seed, score in enumerate((0.8, 0.79))]
    settings = settings_of([*lucky, *steady])
    assert [setting.mean("score") for setting in settings] == [pytest.approx(0.795), pytest.approx(0.7)]
    assert chosen_of(settings)[0].best is steady[0]


def test_the_winner_is_first_where_a_setting_of_fewer_seeds_has_a_higher_mean():
    heads = [trained(0.9, learning_rate=0.3), trained(0.6, learning_rate=0.2)]
    heads += [trained(score, learning_rate=0.1, seed=seed) for seed, score in enumerate((0.95, 0.7, 0.75))]
    settings = settings_of(heads)
    assert [setting.best.config.learning_rate for setting in settings] == [0.3, 0.1, 0.2]
    ended = SweepComparison([Group(settings[1], [], torch.empty(0), {})], None, False, scores(0.9))
    found = setting_rows(settings, ended)
    assert [(row.settings["learning_rate"], row.chosen) for row in found] == [(0.1, "winner"), (0.3, ""), (0.2, "")]


def test_one_setting_of_every_group_and_the_lower_loss_decides_between_equals():
    heads = [
        trained(0.5, val_loss=2.0, learning_rate=0.1),
        trained(0.5, val_loss=1.5, learning_rate=0.2),
        trained(0.6, "hard", learning_rate=0.1),
    ]
    chosen = chosen_of(settings_of(heads))
    assert [(one.group, one.best.config.learning_rate) for one in chosen] == [("hard", 0.1), ("softmax", 0.2)]


def test_a_setting_with_a_diverged_seed_is_never_chosen():
    heads = [
        trained(0.9, learning_rate=9.0, seed=0),
        trained(0.1, learning_rate=9.0, seed=1, diverged=True),
        trained(0.5, learning_rate=0.1, seed=0),
        trained(0.5, learning_rate=0.1, seed=1),
    ]
    assert chosen_of(settings_of(heads))[0].best.config.learning_rate == 0.1
    assert codes(heads) == ["diverged", "edge"]
    with pytest.raises(InputError, match="the loss of every head became infinite or NaN; try lower"):
        chosen_of(settings_of(heads[:2]))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((0.9, 0.5, 0.4), "lowest"), ((0.4, 0.5, 0.9), "highest"), ((0.4, 0.9, 0.5), None)],
)
def test_the_edge_of_the_grid(scores, expected):
    heads = [trained(score, learning_rate=rate) for score, rate in zip(scores, (0.01, 0.1, 1.0), strict=True)]
    found = warnings(heads)
    assert [f"the {expected} that was tried" in warning.message for warning in found] == [True] * bool(expected)


@pytest.mark.parametrize(("inner", "expected"), [(0.9, []), (0.88, []), (0.86, ["edge"])])
def test_an_edge_is_none_where_another_value_is_as_good(inner, expected):
    """The standard error of 90 % of 100 rows is 3 %."""
    scores = zip((0.01, 0.1, 1.0), (0.5, inner, 0.9), strict=True)
    heads = [trained(score, learning_rate=rate, val_loss=2 - rate) for rate, score in scores]
    assert codes(heads) == expected


def test_a_winner_whose_loss_is_above_that_of_equal_scores_sends_nobody_to_higher_rates():
    low = trained(0.5, learning_rate=0.01)
    (warning,) = warnings([low, trained(0.9, learning_rate=1e10, train_loss=3.3e9)])
    assert warning == CodedWarning(
        "runaway",
        f"the winner: the training loss 3.3e+09 is above {math.log(10):.3g}, that of equal scores for all classes; "
        "lower learning_rate (now 1e+10)",
    )
    assert codes([low, trained(0.9, learning_rate=1.0, train_loss=math.log(10))]) == ["edge"]
    assert codes([low, trained(0.9, learning_rate=0.001, train_loss=9.0)]) == ["useless", "edge"]


def test_what_follows_from_another_setting_is_no_edge():
    sizes = ((64, 750, 0.9), (128, 1500, 0.5), (256, 3000, 0.4))
    heads = [trained(score, batch_size=size, epochs=epochs) for size, epochs, score in sizes]
    asked = [Trial("softmax", replace(head.config, epochs=None)) for head in heads]
    assert ["batch_size" in warning.message for warning in warnings(heads, asked=asked)] == [True]
    assert len(warnings(heads)) == 2
    assert followers([vars(head.config) for head in heads]) == {"epochs", "patience"}
    more = [*heads, trained(0.3, batch_size=64, epochs=100)]
    assert followers([vars(head.config) for head in more]) == {"patience"}


def test_one_optimisers_learning_rate_is_no_edge_of_anothers():
    heads = [trained(0.9, learning_rate=0.003), trained(0.5, learning_rate=0.15, optimizer="sgd")]
    assert codes(heads) == []
    heads.append(trained(0.6, learning_rate=0.03))
    assert codes(heads) == ["edge"]


def test_no_smoothing_at_all_and_seeds_and_words_are_no_edge():
    heads = [trained(0.9, label_smoothing=0.0), trained(0.5, label_smoothing=0.1), trained(0.9, seed=4)]
    heads += [trained(0.2, schedule="cosine"), trained(0.2, balanced=True)]
    assert codes(heads) == []


def test_a_winner_within_noise_of_cross_entropy():
    heads = [trained(0.6), trained(0.7, loss="softsort")]
    assert codes(heads, top1=pair(20, 10, 0.1)) == ["noise"]
    assert codes(heads, top1=pair(30, 10, 0.002)) == []
    assert codes(heads, top1=pair(20, 10, 0.1), top5=pair(30, 10, 0.002)) == ["noise"]
    message = warnings(heads, top1=pair(20, 10, 0.1))[0].message
    assert message == (
        "the winner is within noise of softmax on the test split: top1 20 rows won and 10 lost (p = 0.1)"
    )


def test_a_winner_worse_than_cross_entropy_on_the_test_split():
    heads = [trained(0.6), trained(0.7, loss="softsort")]
    (warning,) = warnings(heads, top1=pair(6, 35, binomtest(6, 41).pvalue))
    message = "the winner is worse than softmax on the test split: top1 6 rows won and 35 lost (p = 4.9e-06)"
    assert warning == CodedWarning("noise", message)


def test_a_mixed_criterion_is_judged_by_both_accuracies():
    mixed = (0.5, 0, 0, 0, 0.5)
    heads = [trained(0.6, select=mixed), trained(0.7, loss="softsort", select=mixed)]
    assert codes(heads, top1=pair(20, 10, 0.1), top5=pair(30, 10, 0.002)) == []


def test_validation_rows_that_chose_the_winner_do_not_judge_it():
    (warning,) = warnings([trained(0.6), trained(0.9, loss="softsort")], tested=False)
    assert warning.code == "no-test"


@pytest.mark.parametrize("groups", [1, 6])
def test_a_winner_as_good_as_cross_entropy_is_told_from_it_in_one_sweep_of_twenty_at_most(groups):
    """Whichever group validation prefers; top-1 and top-5 are judged, 1,000 test rows, losses of equal merit."""
    random, sweeps, mixed = np.random.default_rng(groups), 600, (0.5, 0, 0, 0, 0.5)
    names = ("softsort", "neuralsort", "sinkhorn", "odd_even", "bitonic", "splitter_selection")
    heads = [trained(0.6, select=mixed), *(trained(0.7, loss=name, select=mixed) for name in names[:groups])]
    chosen = chosen_of(settings_of(heads))
    told = 0
    for _ in range(sweeps):
        hard = random.exponential(3, 1000)
        ranks = [torch.from_numpy(random.poisson(hard)) for _ in chosen]
        tests = adjusted([paired_tests(own, ranks[-1], 100) for own in ranks[:-1]] + [{}])
        rows = zip(chosen, ranks, tests, strict=True)
        held = SweepComparison([Group(*one[:1], [], *one[1:]) for one in rows], "softmax", True, scores(0.6))
        told += "noise" not in {found.code for found in sweep_warnings(heads, [], held, [], BALANCED)}
    assert told / sweeps <= 0.05 + 2 * (0.05 * 0.95 / sweeps) ** 0.5


@pytest.mark.parametrize(("frequent", "expected"), [(0.7, ["chance"]), (0.5, [])])
def test_a_winner_that_naming_the_most_frequent_class_would_equal(frequent, expected):
    heads = [trained(0.7)]
    found = sweep_warnings(heads, settings_of(heads), comparison(heads, 0.7), [], rows(frequent))
    assert [warning.code for warning in found] == expected


def test_a_baseline_that_nobody_beats():
    assert codes([trained(0.7), trained(0.6, loss="softsort")]) == ["baseline-best"]
    assert codes([trained(0.7)]) == []


def test_without_plain_cross_entropy_nothing_says_what_a_loss_is_worth():
    (warning,) = warnings([trained(0.7, loss="softsort")])
    assert warning.code == "no-baseline"
    assert "add `loss: softmax`, and a grid with p_k [1] and the same m" in warning.message


def test_training_far_above_validation():
    assert codes([trained(0.5)], train=0.95) == ["overfit"]
    assert codes([trained(0.5)], train=0.55) == []

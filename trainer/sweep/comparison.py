"""The end of a sweep: the chosen heads, and they alone, are scored on the test split and compared with the baseline."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..features.feature_set import FeatureSet
from ..fitting import Fitted
from ..scores import SplitScores
from .bank_grouping import Trained
from .model_selection import Setting, baseline_of
from .paired_tests import adjusted, paired_tests, score
from .sweep_record import PairedTest

TRAIN_ROWS = 50_000


@dataclass(frozen=True)
class Group:
    """The setting that validation chose of one group.

    Attributes:
        setting: Its heads, one a seed.
        test: By head, the scores on the test split; empty where there is none.
        ranks: ``(N,)`` ranks of the labels of the test split by its best head; empty where there is none.
        tests: McNemar's tests of its best head against the baseline's on the test split, by ``top1`` and ``top5``,
            with ``p_holm``; empty for the baseline itself, without one, and without a test split.
    """

    setting: Setting
    test: list[SplitScores]
    ranks: Tensor = field(repr=False)
    tests: dict[str, PairedTest]

    @property
    def name(self) -> str:
        """The group's name."""
        return self.setting.group

    def test_of(self, head: Trained) -> SplitScores | None:
        """The test scores of one of the heads."""
        return self.test[self.setting.heads.index(head)] if self.test else None

    def fitted(self) -> Fitted:
        """Its best head, as training left it, with its test scores."""
        best = self.setting.best
        return best.fitted(self.test_of(best), self.ranks)

    def test_values(self, name: str) -> list[float]:
        """A test result of every head; empty where it does not exist."""
        return [value for one in self.test if (value := getattr(one, name)) is not None]


@dataclass(frozen=True)
class SweepComparison:
    """Who won, and by what.

    Attributes:
        groups: The best on validation, the winner, first.
        baseline: Name of the group that stands for plain cross-entropy; ``None`` where there is none.
        tested: Whether there is a test split. Validation is none: the winner was chosen on it.
        train: Scores of the winner on (at most `TRAIN_ROWS`) training rows.
    """

    groups: list[Group]
    baseline: str | None
    tested: bool
    train: SplitScores

    @property
    def winner(self) -> Group:
        """The group that validation prefers."""
        return self.groups[0]


def compare_on_test(chosen: Sequence[Setting], feature_set: FeatureSet) -> SweepComparison:
    """Score the chosen settings once.

    Args:
        chosen: The best setting of every group, the winner first.
        feature_set: What they were trained on.
    """
    tested = "test" in feature_set.splits
    baseline, classes = baseline_of(chosen), len(feature_set.class_names)
    scores = [[_score(head, feature_set, "test") for head in setting.heads] if tested else [] for setting in chosen]
    ranks = [
        rows[setting.heads.index(setting.best)][1] if rows else torch.empty(0, dtype=torch.int64)
        for setting, rows in zip(chosen, scores, strict=True)
    ]
    tests: list[dict[str, PairedTest]] = [{} for _ in chosen]
    if tested and baseline is not None:
        against = ranks[chosen.index(baseline)]
        pairs = zip(chosen, ranks, strict=True)
        tests = adjusted([{} if one is baseline else paired_tests(own, against, classes) for one, own in pairs])
    groups = [
        Group(setting, [row for row, _ in rows], own, found)
        for setting, rows, own, found in zip(chosen, scores, ranks, tests, strict=True)
    ]
    train = _score(chosen[0].best, feature_set, "train", TRAIN_ROWS)[0]
    return SweepComparison(groups, baseline.group if baseline else None, tested, train)


def _score(head: Trained, feature_set: FeatureSet, split: str, limit: int | None = None) -> tuple[SplitScores, Tensor]:
    features, labels = feature_set.arrays(split)
    step = 1 if limit is None else max(1, -(-len(labels) // limit))
    counts = torch.bincount(feature_set.arrays("train")[1], minlength=len(feature_set.class_names))
    return score(head.load(), head.config, features[::step], labels[::step], counts)


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation; ``None`` of fewer than two."""
    return statistics.stdev(values) if len(values) > 1 else None

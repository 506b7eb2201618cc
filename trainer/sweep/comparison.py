"""The end of a sweep: the chosen heads, and they alone, are scored on the test split and compared with the baseline."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..features.feature_set import FeatureSet
from ..fitting import Fitted
from .bank_grouping import Trained
from .model_selection import Setting, baseline_of
from .scoring import Counts, adjusted, paired_tests, score

TRAIN_ROWS = 50_000


@dataclass(frozen=True)
class Group:
    """The setting that validation chose of one contender.

    Attributes:
        setting: Its heads, one a seed.
        test: By head, the scores of the test split; empty where there is none.
        ranks: ``(N,)`` ranks of the labels of the test split by its best head; empty where there is none.
        tests: McNemar's tests of its best head against the baseline's on the test split, by ``top1`` and ``top5``,
            with ``p_holm``; empty for the baseline itself, without one, and without a test split.
    """

    setting: Setting
    test: list[dict[str, Any]]
    ranks: Tensor = field(repr=False)
    tests: dict[str, Counts]

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.setting.contender

    def test_of(self, head: Trained) -> dict[str, Any]:
        """The test scores of one of the heads."""
        return self.test[self.setting.heads.index(head)] if self.test else {}

    def fitted(self) -> Fitted:
        """Its best head, as training left it, with its test scores."""
        best = self.setting.best
        return best.fitted(self.test_of(best), self.ranks)

    def test_values(self, name: str) -> list[float]:
        """A test result of every head; empty where it does not exist."""
        return [row[name] for row in self.test if row[name] is not None]


@dataclass(frozen=True)
class SweepComparison:
    """Who won, and by what.

    Attributes:
        contenders: The best on validation, the winner, first.
        baseline: Name of the contender that stands for plain cross-entropy; ``None`` where there is none.
        tested: Whether there is a test split. Validation is none: the winner was chosen on it.
        train: Scores of the winner on (at most `TRAIN_ROWS`) training rows.
    """

    contenders: list[Group]
    baseline: str | None
    tested: bool
    train: dict[str, Any]

    @property
    def winner(self) -> Group:
        """The contender that validation prefers."""
        return self.contenders[0]


def compare_on_test(chosen: Sequence[Setting], feature_set: FeatureSet) -> SweepComparison:
    """Score the chosen settings once.

    Args:
        chosen: The best setting of every contender, the winner first.
        feature_set: What they were trained on.
    """
    tested = "test" in feature_set.splits
    baseline, classes = baseline_of(chosen), len(feature_set.class_names)
    scores = [[_score(head, feature_set, "test") for head in setting.heads] if tested else [] for setting in chosen]
    ranks = [
        rows[setting.heads.index(setting.best)][1] if rows else torch.empty(0, dtype=torch.int64)
        for setting, rows in zip(chosen, scores, strict=True)
    ]
    tests: list[dict[str, Counts]] = [{} for _ in chosen]
    if tested and baseline is not None:
        against = ranks[chosen.index(baseline)]
        pairs = zip(chosen, ranks, strict=True)
        tests = adjusted([{} if one is baseline else paired_tests(own, against, classes) for one, own in pairs])
    contenders = [
        Group(setting, [row for row, _ in rows], own, found)
        for setting, rows, own, found in zip(chosen, scores, ranks, tests, strict=True)
    ]
    train = _score(chosen[0].best, feature_set, "train", TRAIN_ROWS)[0]
    return SweepComparison(contenders, baseline.contender if baseline else None, tested, train)


def _score(
    head: Trained, feature_set: FeatureSet, split: str, limit: int | None = None
) -> tuple[dict[str, Any], Tensor]:
    features, labels = feature_set.arrays(split)
    step = 1 if limit is None else max(1, -(-len(labels) // limit))
    return score(head.load(), head.config, features[::step], labels[::step])


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation; ``None`` of fewer than two."""
    return statistics.stdev(values) if len(values) > 1 else None

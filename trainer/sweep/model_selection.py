"""What validation chooses: a setting by its mean over seeds, the best setting of every group, the winner."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...core.errors import InputError
from ..train_config import TrainConfig
from .bank_grouping import Trained
from .grid import Trial


@dataclass(frozen=True)
class Setting:
    """The heads that differ in nothing but the seed.

    Attributes:
        group: Within it, one setting is chosen.
        heads: One for each seed.
    """

    group: str
    heads: tuple[Trained, ...]

    @property
    def key(self) -> tuple[str, TrainConfig]:
        """What its heads share: the group, and all settings but the seed."""
        return self.group, replace(self.heads[0].config, seed=0)

    @cached_property
    def usable(self) -> bool:
        """Whether no head diverged."""
        return not any(head.diverged for head in self.heads)

    @cached_property
    def merit(self) -> tuple[float, float]:
        """What settings are compared by: the mean validation score, then the lower mean validation loss."""
        if not self.usable:
            return -math.inf, -math.inf
        return self.mean("score"), -self.mean("loss")

    @property
    def best(self) -> Trained:
        """The head of the best seed."""
        return max(self.heads, key=lambda head: (not head.diverged, head.val.score, -head.val.loss))

    def values(self, name: str) -> list[float]:
        """A validation result of the heads that did not diverge; empty where it does not exist (top-5 of 3 classes)."""
        found = [getattr(head.val, name) for head in self.heads if not head.diverged]
        return [value for value in found if value is not None]

    def mean(self, name: str) -> float:
        """Its mean over the seeds."""
        return statistics.fmean(self.values(name))


def settings_of(heads: Iterable[Trained]) -> list[Setting]:
    """Put heads together that differ in the seed alone, the best setting first."""
    settings: dict[Any, list[Trained]] = {}
    for head in heads:
        settings.setdefault((head.trial.group, replace(head.config, seed=0)), []).append(head)
    found = [Setting(group, tuple(own)) for (group, _), own in settings.items()]
    return sorted(found, key=lambda setting: setting.merit, reverse=True)


def chosen_of(settings: Sequence[Setting]) -> list[Setting]:
    """The best setting of every group, the best group, which wins the sweep, first.

    Raises:
        InputError: No head is usable.
    """
    best: dict[str, Setting] = {}
    for setting in settings:
        if setting.usable:
            best.setdefault(setting.group, setting)
    if not best:
        raise InputError("sweep: the loss of every head became infinite or NaN; try lower values of learning_rate")
    return list(best.values())


def repeats(chosen: Sequence[Setting], seeds: Sequence[int]) -> list[Trial]:
    """The heads that chosen settings lack of some seeds."""
    return [
        Trial(setting.group, replace(setting.heads[0].config, seed=seed))
        for setting in chosen
        for seed in seeds
        if seed not in {head.config.seed for head in setting.heads}
    ]


def baseline_of(chosen: Sequence[Setting]) -> Setting | None:
    """The best group that is plain cross-entropy, if there is one."""
    return next((setting for setting in chosen if setting.best.config.loss == "softmax"), None)

"""Heads that are trained together, in one pass over the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...core.files import sha256_json
from ...models.heads import Head, load_head
from ..config import PER_HEAD, TrainConfig
from ..fitting import Fitted
from .grid import Trial, spelt_out

# A CPU gains nothing from wide banks, and narrow ones are kept sooner; on a GPU it is 8 GB.
NUMBERS = {"cpu": 2**25, "cuda": 2**31}


@dataclass(frozen=True)
class Trained:
    """A trained head of a sweep.

    Attributes:
        point: What was asked.
        bank: The number of its bank, from 0.
        file: Its weights.
        config: Its settings, every default filled in.
        best: The metrics of the epoch that was kept; empty when it diverged in the first.
        history: The metrics of every epoch.
        val: Its validation scores.
        seconds: What its bank took.
        diverged: Whether its loss stopped being finite.
        placement: Where the training features were, in words.
        device: What computed.
        start: What it started from.
    """

    point: Trial
    bank: int
    file: Path
    config: TrainConfig
    best: dict[str, Any]
    history: list[dict[str, Any]]
    val: dict[str, Any]
    seconds: float
    diverged: bool
    placement: str
    device: str
    start: dict[str, Any]

    def load(self) -> Head:
        """The head itself."""
        return load_head(self.file)

    def fitted(self, test: dict[str, Any], test_ranks: Tensor) -> Fitted:
        """The head as training left it, with the scores of the test split."""
        return Fitted(
            config=self.config,
            head=self.load(),
            best=self.best,
            history=self.history,
            val=self.val,
            test=test,
            val_ranks=torch.empty(0, dtype=torch.int64),
            test_ranks=test_ranks,
            seconds=self.seconds,
            diverged=self.diverged,
            placement=self.placement,
            device=torch.device(self.device),
            start=self.start,
        )


def banks_of(points: Sequence[Trial], num_classes: int, feature_dim: int) -> list[list[Trial]]:
    """Group the heads that may share a pass over the data; within a bank, heads of one loss are neighbours.

    A bank is cut where its weights, gradients, moments, best weights and logits would be more than `NUMBERS`; LBFGS
    fits each head alone.

    Args:
        points: The heads, their devices resolved.
        num_classes: C.
        feature_dim: D.
    """
    banks: list[list[Trial]] = []
    for _, group in groupby(sorted(points, key=lambda point: (_shared(point), repr(_own(point)))), key=_shared):
        heads = list(group)
        config = heads[0].config
        needed = num_classes * (5 * feature_dim + config.batch_size)
        room = NUMBERS[config.device.partition(":")[0]] // needed
        size = 1 if config.optimizer == "lbfgs" else max(room, 1)
        banks += [heads[start : start + size] for start in range(0, len(heads), size)]
    return banks


def _shared(point: Trial) -> str:
    return sha256_json({key: value for key, value in spelt_out(point.config).items() if key not in PER_HEAD})


def _own(point: Trial) -> list[Any]:
    return [getattr(point.config, name) for name in PER_HEAD]

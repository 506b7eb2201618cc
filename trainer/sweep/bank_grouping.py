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
from ..fitting import Fitted
from ..fitting.fit_record import FitRecord, fields_of
from ..scores import SplitScores
from ..train_config import PER_HEAD
from .grid import Trial, spelt_out

# A CPU gains nothing from wide banks, and narrow ones are kept sooner; on a GPU it is 8 GB.
NUMBERS = {"cpu": 2**25, "cuda": 2**31}


@dataclass(frozen=True, kw_only=True)
class TrainedHead(FitRecord):
    """How a head of a sweep was fitted: what is kept of it in its bank's record."""

    val: SplitScores


@dataclass(frozen=True, kw_only=True)
class Trained(TrainedHead):
    """A trained head of a sweep.

    Attributes:
        trial: What was asked.
        bank: The number of its bank, from 0.
        file: Its weights.
    """

    trial: Trial
    bank: int
    file: Path

    def load(self) -> Head:
        """The head itself."""
        return load_head(self.file)

    def fitted(self, test: SplitScores | None, test_ranks: Tensor) -> Fitted:
        """The head as training left it, with the scores of the test split."""
        return Fitted(
            **fields_of(self, FitRecord),
            head=self.load(),
            test=test,
            val_ranks=torch.empty(0, dtype=torch.int64),
            test_ranks=test_ranks,
        )


def banks_of(trials: Sequence[Trial], num_classes: int, feature_dim: int) -> list[list[Trial]]:
    """Group the heads that may share a pass over the data; within a bank, heads of one loss are neighbours.

    A bank is cut where its weights, gradients, moments, best weights and logits would be more than `NUMBERS`; LBFGS
    fits each head alone.

    Args:
        trials: The heads, their devices resolved.
        num_classes: C.
        feature_dim: D.
    """
    banks: list[list[Trial]] = []
    for _, group in groupby(sorted(trials, key=lambda trial: (_shared(trial), repr(_own(trial)))), key=_shared):
        heads = list(group)
        config = heads[0].config
        needed = num_classes * (5 * feature_dim + config.batch_size)
        room = NUMBERS[config.device.partition(":")[0]] // needed
        size = 1 if config.optimizer == "lbfgs" else max(room, 1)
        banks += [heads[start : start + size] for start in range(0, len(heads), size)]
    return banks


def _shared(trial: Trial) -> str:
    return sha256_json({key: value for key, value in spelt_out(trial.config).items() if key not in PER_HEAD})


def _own(trial: Trial) -> list[Any]:
    return [getattr(trial.config, name) for name in PER_HEAD]

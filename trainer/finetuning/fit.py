"""The fit of a network: epochs, validation, the best epoch, the test split once."""

import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import torch
from timm.utils.model_ema import ModelEmaV3
from torch import nn

from ...core.progress import Advance, progress
from ...core.records import to_json
from ...models.preprocessing_layers import Normalize
from ..criterion import criterion
from ..fitting.best_epochs import Selection
from ..fitting.checkpoint import AGAIN, Checkpoint, FitState
from ..resolved_settings import selection_weights
from ..scores import EpochScores, SplitScores
from .memory import batch_that_fits
from .network import Network
from .pictures import TRAIN, Pictures
from .scoring import score
from .settings import FinetuneConfig
from .start import Start
from .steps import Steps


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A fitted network.

    Attributes:
        config: Its settings, every value resolved.
        best: The epoch that was kept, see `EpochScores`; ``None`` where none had a finite loss.
        history: All epochs.
        val: The scores of the kept epoch on validation, in float32.
        test: The same on the test split.
        seconds: What it took, validation included.
        diverged: Whether the loss stopped being finite.
        rate: The largest step size of its last step.
        learning: How many weights learnt.
    """

    config: FinetuneConfig
    best: EpochScores | None
    history: list[EpochScores] = field(repr=False)
    val: SplitScores | None
    test: SplitScores | None
    seconds: float
    diverged: bool
    rate: float
    learning: int


class Fit:
    """The state of a fit while it goes on.

    Args:
        start: The network, which is trained in place.
        config: The settings, every value resolved.
        pictures: By split.
        num_classes: C.
        on_epoch: Called with the scores of an epoch, in a list.
    """

    def __init__(
        self,
        start: Start,
        config: FinetuneConfig,
        pictures: Mapping[str, Pictures],
        num_classes: int,
        on_epoch: Callable[[list[EpochScores]], None] | None = None,
    ) -> None:
        device = torch.device(config.device)
        self.start, self.config, self.pictures, self.on_epoch = start, config, pictures, on_epoch
        self.weights = selection_weights(config, num_classes)
        self.network = Network(start.backbone, start.head, config).to(device)
        self.network.to(memory_format=torch.channels_last)
        self.normalize = Normalize(start.backbone.preprocessing).to(device)
        counts = torch.bincount(pictures[TRAIN].labels, minlength=num_classes)
        self.loss = criterion(config, class_counts=counts)
        self.average = ModelEmaV3(self.network, config.averaging, use_warmup=True) if config.averaging else None
        size, train = start.backbone.preprocessing.crop_size, pictures[TRAIN]
        self.steps = Steps(self.network, self.normalize, self.loss, config, train, size, num_classes)
        self.selection = Selection([config.patience])
        self.best_state = {name: value.clone() for name, value in self.scored.state_dict().items()}
        self.done, self.seconds, self._began = 0, 0.0, time.perf_counter()

    @property
    def scored(self) -> nn.Module:
        """What is scored and kept: the network, or the average of its weights."""
        return self.network if self.average is None else self.average.module

    def run(self, checkpoint: Checkpoint, metrics: Path) -> None:
        """Go through the epochs until the network improves no more."""
        self._restore(checkpoint)
        self._began = time.perf_counter() - self.seconds
        total, images = self.config.epochs, self.steps.images
        title = f"Fine-tuning {self.config.loss}"
        shows = progress(title, images, "images", done=self.done * images, epochs=total)
        with shows as show, ExitStack() as opened:
            log = opened.enter_context(metrics.open("w", 1, encoding="utf-8"))
            for epoch in self.selection.histories[0]:
                _write(log, epoch)
            if self.start.is_run and not self.selection.histories[0]:
                self._note(log, self._start())
            while self.done < total and self.selection.active[0]:
                self._note(log, self._epoch(show))
                show(0, self.selection.status())
                if self.selection.active[0]:
                    checkpoint.save(self._state)
        self.seconds = time.perf_counter() - self._began

    def tuned(self) -> Tuned:
        """What came of it, scored on validation and on the test split; the start's modules hold its best weights."""
        best = self.selection.best[0]
        self.network.load_state_dict(self.best_state)
        if self.average is not None:
            self.average.module.load_state_dict(self.best_state)
        finite = best is not None
        return Tuned(
            config=self.config,
            best=best,
            history=self.selection.histories[0],
            val=self._scores("val") if finite else None,
            test=self._scores("test") if finite else None,
            seconds=self.seconds,
            diverged=self.selection.diverged[0],
            rate=self.steps.optimization.rate,
            learning=self.network.learning(),
        )

    def _start(self) -> EpochScores:
        """The start, a classifier already, as the epoch to be beaten."""
        val = self._scores("val")
        return EpochScores(0, math.inf if val is None else val.loss, self._elapsed(), val)

    def _epoch(self, show: Advance) -> EpochScores:
        """Go through the next epoch."""
        self.done += 1
        with batch_that_fits(self.config.batch_size, self.steps.attempt):
            loss = self.steps.run(self.done, self.average, lambda images: show(images, self.selection.status()))
        val = self._scores("val") if math.isfinite(loss) else None
        return EpochScores(self.done, loss, self._elapsed(), val)

    def _elapsed(self) -> float:
        return round(time.perf_counter() - self._began, 3)

    def _scores(self, split: str) -> SplitScores | None:
        size = self.config.batch_size
        return score(self.scored, self.normalize, self.loss, self.pictures[split], self.weights, size)

    def _note(self, log: TextIO, epoch: EpochScores) -> None:
        """Write an epoch, and keep its weights if it is the best."""
        if self.selection.add(0, epoch):
            for name, value in self.scored.state_dict().items():
                self.best_state[name].copy_(value)
        _write(log, epoch)
        self.seconds = epoch.seconds
        if self.on_epoch is not None:
            self.on_epoch([epoch])

    def _state(self) -> FitState:
        return {
            "epochs": {
                "network": self.network.state_dict(),
                "average": {} if self.average is None else self.average.module.state_dict(),
                "optimizer": self.steps.optimization.optimizer.state_dict(),
            },
            "best_state": self.best_state,
            "selection": self.selection.state(),
            "done": self.done,
            "seconds": self.seconds,
        }

    def _restore(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.load()
        if state is None:
            return
        kept = state["epochs"]
        self.network.load_state_dict(kept["network"])
        if self.average is not None:
            self.average.module.load_state_dict(kept["average"])
        self.steps.optimization.optimizer.load_state_dict(kept["optimizer"])
        for name, value in state["best_state"].items():
            self.best_state[name].copy_(value)
        self.selection.restore(state["selection"], str(checkpoint.path), AGAIN)
        self.done, self.seconds = state["done"], state["seconds"]


def _write(log: TextIO, epoch: EpochScores) -> None:
    log.write(json.dumps(to_json(epoch)) + "\n")

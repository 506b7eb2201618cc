"""The fit of a bank of heads: epochs, validation, the best epoch of every head, the test split once."""

import copy
import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor

from ...core.distributed import Processes
from ...core.errors import InputError
from ...core.json_values import JsonObject
from ...core.progress import progress
from ...core.records import to_json
from ...models.heads import Head
from ..initialization import Initialization, initialized_head
from ..resolved_settings import resolve, selection_weights
from ..scores import EpochScores, SplitScores
from ..train_config import PER_HEAD, TrainConfig
from .best_epochs import Selection
from .checkpoint import AGAIN, Checkpoint, CheckpointFolder, FitState
from .device_rows import DeviceRows, place
from .epochs import Epochs, epochs_for
from .fit_record import FitRecord
from .head_bank import Bank, loss_key
from .scoring import hit_counts, label_ranks_of, scores_of_ranks, split_scores, tf32

METRICS = "metrics.jsonl"
Split = tuple[Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class Fitted(FitRecord):
    """A fitted head.

    Attributes:
        head: The head of the chosen epoch, in evaluation mode, on the CPU.
        test: Its scores on the test split; ``None`` without that split.
        val_ranks: ``(N,)`` int64 rank of the label of every validation row, for paired tests.
        test_ranks: The same of the test split.
    """

    head: Head
    test: SplitScores | None
    val_ranks: Tensor = field(repr=False)
    test_ranks: Tensor = field(repr=False)


def fit_heads(
    rows: Mapping[str, Split],
    num_classes: int,
    configs: Sequence[TrainConfig],
    start: Initialization | None = None,
    *,
    keep: CheckpointFolder | None = None,
    memory: int | None = None,
    on_epoch: Callable[[list[EpochScores]], None] | None = None,
    processes: Processes | None = None,
) -> list[Fitted]:
    """Fit heads to features, all in one pass over them.

    After every epoch the validation split is scored, and each head keeps the epoch with the highest score (see
    `TrainConfig.select`), the lower validation loss deciding between equals. Without that split it keeps the last one.

    Args:
        rows: ``train`` and, where they are there, ``val`` and ``test``, which is scored once, at the end: features
            ``(N, D)``, float16 or float32, and labels ``(N,)``, int64 in 0..C-1, on the CPU.
        num_classes: C.
        configs: The settings of every head; they may differ in `PER_HEAD` only. ``lbfgs`` fits a single head.
        start: What every head starts from; by default what the settings say, if that needs no names of classes.
        keep: Where ``metrics.jsonl`` and the checkpoint of an unfinished fit go; a fit of the same settings goes on
            from there.
        memory: Bytes that training features may take on a CUDA device; more are streamed. None is what is free.
        on_epoch: Called with the scores of an epoch, one for each head that still improves.
        processes: Those that share the work, if they have joined already.

    Returns:
        One fitted head for each of ``configs``.

    Raises:
        InputError: Settings that do not fit the rows or each other, or a damaged or foreign checkpoint.
    """
    if not configs:
        raise InputError("no head to fit: no settings given")
    configs = [resolve(config, num_classes, rows["train"][0]) for config in configs]
    _check_shared(configs)
    if start is None:
        names = [str(label) for label in range(num_classes)]
        start = initialized_head(configs[0], rows["train"][0].shape[1], names, None)
    places = sorted(range(len(configs)), key=lambda place: repr(loss_key(configs[place])))
    ordered = [configs[place] for place in places]
    joined = Processes.joined(configs[0].device) if processes is None else processes
    fit = Fit(rows, num_classes, ordered, start, joined, memory, on_epoch)
    checkpoint = None if keep is None else Checkpoint(keep, _identity(configs, keep, start))
    try:
        fit.run(checkpoint, None if keep is None or joined.rank else keep.folder / METRICS)
        found = fit.fitted()
    finally:
        fit.epochs.release()
    return [found[places.index(place)] for place in range(len(configs))]


def _check_shared(configs: Sequence[TrainConfig]) -> None:
    if configs[0].optimizer == "lbfgs" and len(configs) > 1:
        raise InputError(f"--optimizer: lbfgs found for {len(configs)} heads; it fits one head at a time")
    for name in (entry.name for entry in dataclasses.fields(TrainConfig)):
        values = {repr(getattr(config, name)) for config in configs}
        if len(values) > 1 and name not in PER_HEAD:
            raise InputError(
                f"{name}: {' and '.join(sorted(values))} found; heads of one bank share one value", keyword=name
            )


def _identity(configs: Sequence[TrainConfig], keep: CheckpointFolder, start: Initialization) -> JsonObject:
    settings = [dataclasses.asdict(config) for config in configs]
    named = {name: [entry[name] for entry in settings] for name in settings[0]}
    return (
        {name: values[0] if len(values) == 1 else values for name, values in named.items()}
        | dict(keep.identity)
        | {"initialization": asdict(start.record)}
    )


class Fit:
    """The state of a fit while it goes on."""

    def __init__(
        self,
        rows: Mapping[str, Split],
        num_classes: int,
        configs: Sequence[TrainConfig],
        start: Initialization,
        processes: Processes,
        memory: int | None,
        on_epoch: Callable[[list[EpochScores]], None] | None = None,
    ) -> None:
        self.configs, self.processes, self.on_epoch = list(configs), processes, on_epoch
        self.weights = [selection_weights(config, num_classes) for config in configs]
        self.rows: dict[str, DeviceRows] = {
            name: place(*rows[name], processes.device, memory if name == "train" else None, processes.local)
            for name in ("val", "train", "test")
            if name in rows and (name != "val" or len(rows["val"][1]))
        }
        self.epochs: Epochs = epochs_for(self.rows["train"], rows["train"][1], num_classes, configs, start, processes)
        self.bank: Bank = self.epochs.bank
        self.initialization = start.record
        self.best_state = {name: value.clone() for name, value in self.epochs.state().items()}
        self.selection = Selection([config.patience for config in configs])
        self.done, self.seconds = 0, 0.0

    def run(self, checkpoint: Checkpoint | None, metrics: Path | None) -> None:
        """Go through the epochs until no head improves any more."""
        if checkpoint is not None:
            self._restore(checkpoint)
        start, before = time.perf_counter(), self.seconds
        config = self.configs[0]
        total, rows = config.epochs, self.epochs.images
        title = f"Training {config.loss}" if self.bank.size == 1 else f"Training {self.bank.size} heads"
        done, shown = self.done * rows, not self.processes.rank
        shows = progress(title, rows, "rows", done=done, epochs=total, shown=shown)
        with shows as show, ExitStack() as opened:
            log = None if metrics is None else opened.enter_context(metrics.open("w", 1, encoding="utf-8"))
            self._write(log, self.selection.histories)
            while self.done < total and any(self.selection.active):
                found = torch.cat([self._epoch(show), *self._validate()], dim=1).tolist()  # waits for the device
                self.seconds = before + time.perf_counter() - start
                new = self._score(found)
                self._write(log, new)
                show(0, self.selection.status())
                if checkpoint is not None and not self.processes.rank and any(self.selection.active):
                    checkpoint.save(self._state)
        self.seconds = before + time.perf_counter() - start

    def fitted(self) -> list[Fitted]:
        """The heads of their best epochs, scored on validation and on the test split, in float32."""
        val = self._final("val")
        test = self._final("test")
        return [
            Fitted(
                config=config,
                head=self._head(head),
                best=self.selection.best[head],
                history=self.selection.histories[head],
                val=val[head][0],
                test=test[head][0],
                val_ranks=val[head][1],
                test_ranks=test[head][1],
                seconds=self.seconds,
                diverged=self.selection.diverged[head],
                placement=self.rows["train"].placement,
                device=str(self.processes.device),
                initialization=self.initialization,
            )
            for head, config in enumerate(self.configs)
        ]

    def _epoch(self, show: Callable[..., None]) -> Tensor:
        """Go through the next epoch; mean losses ``(H, 1)`` float64 on the device."""
        self.done += 1
        losses = self.epochs.run(self.done, lambda images: show(images, self.selection.status()))
        self.processes.sum(losses)
        return losses.double()[:, None] / self.epochs.images

    def _validate(self) -> list[Tensor]:
        """Mean losses ``(H, 1)`` and hits ``(H, K)`` on the validation split, if there is one, on the device."""
        if "val" not in self.rows:
            return []
        with tf32(self.processes.device):
            ranks, losses = label_ranks_of(self.bank, self.epochs.state(), self.rows["val"], self.processes)
        return [losses[:, None], hit_counts(ranks, max(self.weights, key=len))]

    def _score(self, found: Sequence[Sequence[float]]) -> list[list[EpochScores]]:
        """The epoch's scores, in a list, of every head that is still active; an empty list for the others.

        Args:
            found: Of every head its loss and, with a validation split, the loss and the hits there.
        """
        state = self.epochs.state()
        new: list[list[EpochScores]] = [[] for _ in found]
        for head in [head for head, active in enumerate(self.selection.active) if active]:
            loss, *scored = found[head]
            val = None
            if scored:
                n, classes = len(self.rows["val"].labels), self.bank.head.num_classes
                val = split_scores(scored[1:], n, scored[0], self.weights[head], classes)
            epoch = EpochScores(self.done, loss, round(self.seconds, 3), val)
            if self.selection.add(head, epoch):
                self._keep(head, state)
            new[head].append(epoch)
        if self.on_epoch is not None:
            self.on_epoch([epoch for epochs in new for epoch in epochs])
        return new

    def _keep(self, head: int, state: Mapping[str, Tensor]) -> None:
        for name, value in state.items():
            if self.bank.head.bank is None:
                self.best_state[name].copy_(value)
            else:
                self.best_state[name][head].copy_(value[head])

    def _write(self, log: TextIO | None, histories: Sequence[Sequence[EpochScores]]) -> None:
        if log is None:
            return
        for head, history in enumerate(histories):
            for epoch in history:
                values = ({} if self.bank.size == 1 else {"head": head}) | to_json(epoch)
                log.write(json.dumps(values) + "\n")

    def _final(self, name: str) -> list[tuple[SplitScores | None, Tensor]]:
        """Scores, and ranks ``(N,)`` on the CPU, of every head's best epoch; none without that split."""
        if name not in self.rows:
            return [(None, torch.empty(0, dtype=torch.int64))] * self.bank.size
        ranks, losses = label_ranks_of(self.bank, self.best_state, self.rows[name], self.processes)
        scores = [
            scores_of_ranks(own, loss, weights, self.bank.head.num_classes)
            for own, loss, weights in zip(ranks, losses.tolist(), self.weights, strict=True)
        ]
        return list(zip(scores, ranks.cpu(), strict=True))

    def _head(self, head: int) -> Head:
        """The head of its best epoch, as a single one on the CPU."""
        bank = self.bank.head
        single = copy.deepcopy(bank) if bank.bank is None else bank.member(head)
        state = {name: value if bank.bank is None else value[head] for name, value in self.best_state.items()}
        single.load_state_dict(state, strict=False)
        return single.cpu().eval()

    def _state(self) -> FitState:
        return {
            "epochs": self.epochs.save(),
            "best_state": self.best_state,
            "selection": self.selection.state(),
            "done": self.done,
            "seconds": self.seconds,
        }

    def _restore(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.load()
        if state is None:
            return
        self.epochs.restore(state["epochs"])
        for name, value in state["best_state"].items():
            self.best_state[name].copy_(value)
        self.selection.restore(state["selection"], str(checkpoint.path), AGAIN)
        self.done, self.seconds = state["done"], state["seconds"]

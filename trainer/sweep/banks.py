"""Heads that are trained together, and where a finished bank waits for the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...models.environment import versions
from ...models.errors import InputError
from ...models.files import new_folder, only_writer, read_json, sha256_json, write_json
from ...models.heads import Head, load_head, save_head
from ..config import PER_HEAD, TrainConfig
from ..fitting import Fitted
from .grid import Point, spelt_out

RECORD = "bank.json"


@dataclass(frozen=True)
class Trained:
    """A trained head of a sweep.

    Attributes:
        point: What was asked.
        bank: The number of its bank, from 0.
        config: Its settings, every default filled in.
        best: The metrics of the epoch that was kept; empty when it diverged in the first.
        history: The metrics of every epoch.
        val: Its validation scores.
        seconds: What its bank took.
        diverged: Whether its loss stopped being finite.
        placement: Where the training features were, in words.
        device: What computed.
        file: Its weights.
    """

    point: Point
    bank: int
    config: TrainConfig
    best: dict[str, Any]
    history: list[dict[str, Any]]
    val: dict[str, Any]
    seconds: float
    diverged: bool
    placement: str
    device: str
    file: Path

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
        )


def banks_of(points: Sequence[Point]) -> list[list[Point]]:
    """Group the heads that may share a pass over the data; within a bank, heads of one loss are neighbours."""
    ordered = sorted(points, key=lambda point: (_shared(point), repr(_own(point))))
    return [list(group) for _, group in groupby(ordered, key=_shared)]


def _shared(point: Point) -> str:
    return sha256_json({key: value for key, value in spelt_out(point.config).items() if key not in PER_HEAD})


def _own(point: Point) -> list[Any]:
    return [getattr(point.config, name) for name in PER_HEAD]


class Partial:
    """The folder ``OUT.partial`` with the banks that are finished.

    A bank is found again by everything that decides its heads: features, settings, versions.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        found = versions()
        self._origin = {"fingerprint": fingerprint, "headsmith": found["headsmith"], "torch": found["torch"]}

    def holds(self, bank: Sequence[Point]) -> bool:
        """Whether a bank is finished."""
        return (self._path(bank) / RECORD).is_file()

    def write(self, bank: Sequence[Point], fitted: Sequence[Fitted]) -> None:
        """Keep a finished bank, whole or not at all."""
        with new_folder(self._path(bank)) as folder:
            for number, one in enumerate(fitted):
                save_head(one.head, folder / f"{number:04d}.safetensors")
            write_json(folder / RECORD, {"heads": [_row(one) for one in fitted]})

    def read(self, bank: Sequence[Point], number: int) -> list[Trained]:
        """The heads of a finished bank, the ``number``-th of the sweep."""
        path = self._path(bank)
        rows = read_json(path / RECORD)["heads"]
        return [
            Trained(point, number, _config(row.pop("config")), file=path / f"{place:04d}.safetensors", **row)
            for place, (point, row) in enumerate(zip(bank, rows, strict=True))
        ]

    def _path(self, bank: Sequence[Point]) -> Path:
        settings = [spelt_out(point.config) for point in bank]
        return self.folder / f"bank-{sha256_json(self._origin | {'settings': settings})[:16]}"


@contextmanager
def open_partial(out: Path, fingerprint: str) -> Iterator[Partial]:
    """The unfinished sweep beside ``out``, for this process alone.

    Raises:
        InputError: Another sweep writes it, or something else is in its place.
    """
    folder = out.resolve().with_name(f"{out.resolve().name}.partial")
    with only_writer(out, "sweep"):
        folder.mkdir(parents=True, exist_ok=True)
        strange = [path.name for path in folder.iterdir() if not path.name.startswith(("bank-", "."))]
        if strange:
            raise InputError(f"{folder}: is in the way and not an unfinished sweep (holds {strange[0]}); move it away")
        yield Partial(folder, fingerprint)


def _row(fitted: Fitted) -> dict[str, Any]:
    return {
        "config": spelt_out(fitted.config),
        "best": fitted.best,
        "history": fitted.history,
        "val": fitted.val,
        "seconds": fitted.seconds,
        "diverged": fitted.diverged,
        "placement": fitted.placement,
        "device": str(fitted.device),
    }


def _config(values: dict[str, Any]) -> TrainConfig:
    settings: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return TrainConfig(**settings)

"""The folder ``OUT.partial``, where finished banks wait for the others."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from ...core.environment import versions
from ...core.errors import DamagedFileError, InputError, keeping
from ...core.files import new_folder, only_writer, read_json, sha256_json, write_json
from ...core.structure import structured
from ...models.heads import save_head
from ..config import TrainConfig
from ..fitting import Fitted
from .bank_grouping import Trained
from .grid import Trial, spelt_out

RECORD = "bank.json"


class _Scores(TypedDict):
    """What `accuracies` gives."""

    n: int
    loss: float
    top1: float
    top5: float | None
    score: float


class _Row(TypedDict):
    """A head, as `Trained` has it."""

    config: dict[str, Any]
    best: dict[str, Any]
    history: list[dict[str, Any]]
    val: _Scores
    seconds: float
    diverged: bool
    placement: str
    device: str
    start: dict[str, Any]


class _Bank(TypedDict):
    heads: list[_Row]


class Partial:
    """An unfinished sweep.

    A bank is found again by everything that decides its heads: features, start, settings, versions.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        found = versions()
        self._origin = {"fingerprint": fingerprint, "headsmith": found["headsmith"], "torch": found["torch"]}

    def path(self, bank: Sequence[Trial], start: Mapping[str, Any]) -> Path:
        """The folder of a bank whose heads start from what ``start`` says."""
        settings = [spelt_out(point.config) for point in bank]
        return self.folder / f"bank-{sha256_json(self._origin | {'start': start, 'settings': settings})[:16]}"


def partial_of(out: Path) -> Path:
    """The folder of the unfinished sweep to ``out``."""
    return out.resolve().with_name(f"{out.resolve().name}.partial")


@contextmanager
def open_partial(out: Path, fingerprint: str) -> Iterator[Partial]:
    """The unfinished sweep beside ``out``, for this process alone.

    Raises:
        InputError: Another sweep writes it, or something else is in its place.
    """
    folder = partial_of(out)
    with only_writer(out, "sweep"):
        folder.mkdir(parents=True, exist_ok=True)
        strange = [path.name for path in folder.iterdir() if not path.name.startswith(("bank-", "."))]
        if strange:
            raise InputError(f"{folder}: is in the way and not an unfinished sweep (holds {strange[0]}); move it away")
        try:
            with keeping(lambda: _kept(folder)):
                yield Partial(folder, fingerprint)
        finally:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _kept(folder: Path) -> str:
    count = len(list(folder.glob("bank-*/")))
    return f"{folder} keeps {count} trained banks of heads; the same command goes on from there" * bool(count)


def is_finished(path: Path) -> bool:
    """Whether the bank at ``path`` is there."""
    return (path / RECORD).is_file()


def write_bank(path: Path, fitted: Sequence[Fitted]) -> None:
    """Keep a finished bank, whole or not at all."""
    with new_folder(path) as folder:
        for number, one in enumerate(fitted):
            save_head(one.head, folder / f"{number:04d}.safetensors")
        write_json(folder / RECORD, {"heads": [_row(one) for one in fitted]})


def read_bank(path: Path, bank: Sequence[Trial], number: int) -> list[Trained]:
    """The heads of a finished bank, the ``number``-th of the sweep.

    Raises:
        DamagedFileError: Its record is not what `write_bank` wrote for these heads.
    """
    again = f"delete {path} and sweep again"
    record = structured(read_json(path / RECORD), _Bank, str(path / RECORD), advice=again)
    rows: list[dict[str, Any]] = [dict(row) for row in record["heads"]]
    if len(rows) != len(bank):
        raise DamagedFileError(f"{path / RECORD}: heads: found {len(rows)}, expected {len(bank)}; {again}")
    heads = []
    for place, (point, row) in enumerate(zip(bank, rows, strict=True)):
        own = {name: row[name] for name in _Row.__annotations__ if name != "config"}
        try:
            config = TrainConfig(**row["config"])
        except InputError as error:
            raise DamagedFileError(f"{path / RECORD}: heads[{place}].config.{error}; {again}") from None
        heads.append(Trained(point, number, path / f"{place:04d}.safetensors", config, **own))
    return heads


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
        "start": dict(fitted.start),
    }

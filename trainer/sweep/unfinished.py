"""The folder ``OUT.partial``, where finished banks wait for the others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ...core.environment import versions
from ...core.errors import DamagedFileError, InputError, keeping
from ...core.files import new_folder, only_writer, sha256_json
from ...core.records import read_record, write_record
from ...models.heads import save_head
from ..fitting import Fitted
from ..fitting.fit_record import fields_of
from ..run_record import InitializationRecord
from .bank_grouping import Trained, TrainedHead
from .grid import Trial, spelt_out

RECORD = "bank.json"


@dataclass(frozen=True)
class BankRecord:
    """A finished bank, as ``bank.json`` holds it."""

    heads: list[TrainedHead]


class Partial:
    """An unfinished sweep.

    A bank is found again by everything that decides its heads: features, start, settings, versions.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        found = versions()
        self._origin = {"fingerprint": fingerprint, "headsmith": found["headsmith"], "torch": found["torch"]}

    def path(self, bank: Sequence[Trial], initialization: InitializationRecord) -> Path:
        """The folder of a bank."""
        own = {"initialization": asdict(initialization), "settings": [spelt_out(trial.config) for trial in bank]}
        return self.folder / f"bank-{sha256_json(self._origin | own)[:16]}"


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
            raise InputError(f"{folder}: is not an unfinished sweep (holds {strange[0]}); move it away")
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
        write_record(folder / RECORD, BankRecord([TrainedHead(**fields_of(one, TrainedHead)) for one in fitted]))


def read_bank(path: Path, bank: Sequence[Trial], number: int) -> list[Trained]:
    """The heads of a finished bank, the ``number``-th of the sweep.

    Raises:
        DamagedFileError: Its record is not what `write_bank` wrote for these heads.
    """
    again = f"delete {path} and sweep again"
    heads = read_record(path / RECORD, BankRecord, advice=again).heads
    if len(heads) != len(bank):
        raise DamagedFileError(f"{path / RECORD}: heads: found {len(heads)}, expected {len(bank)}; {again}")
    return [
        Trained(**vars(head), trial=trial, bank=number, file=path / f"{place:04d}.safetensors")
        for place, (trial, head) in enumerate(zip(bank, heads, strict=True))
    ]

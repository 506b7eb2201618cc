"""The folder of results, into which several evaluations may write at once."""

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock

from ...core.errors import InputError
from ...core.files import check_below, make_folder, new_folder
from ...core.printable import printable
from ...export.runtime import Array
from ..held_out_record import HeldOutRecord
from ..result import EvalResult, FailedModel
from ..statistics import standings
from .predictions import Predictions
from .reading import DATA, LOCK, LOGITS, MODELS, PREDICTIONS, RESULT, TABLE, load_results
from .table import COLUMNS, Row, failed_row, read_table, result_row, write_table

RANKING = ("rank", "tied", "p_holm")


class ResultsFolder:
    """A folder with results on one held-out set.

    Every change is one file or folder that is whole or not there, made while a lock is held.

    Attributes:
        path: The folder.
        data: The held-out set.
    """

    def __init__(self, path: Path, data: HeldOutRecord) -> None:
        """Go on with a folder; one that is not there is made when there is something to write.

        Raises:
            InputError: It holds results on another held-out set, or something else than results.
        """
        self.path, self.data = path, data
        check_below(path / DATA)
        self._lock = FileLock(path / LOCK)
        if self.begun:
            self._check()
        elif path.is_dir() and (other := next(filter(_is_other, path.iterdir()), None)):
            raise InputError(f"{path}: holds {printable(other.name)}, not results; choose another `out`")

    @property
    def begun(self) -> bool:
        """Whether the folder belongs to a held-out set already, because something was written."""
        return (self.path / DATA).exists()

    def _begin(self) -> None:
        make_folder(self.path)
        with self._lock:
            if not self.begun:
                self.data.write(self.path / DATA)
        self._check()

    def _check(self) -> None:
        found = HeldOutRecord.read(self.path / DATA)
        if found.fingerprint != self.data.fingerprint:
            raise InputError(
                f"{self.path}: holds results on {found.name} ({found.fingerprint[:12]}), not on {self.data.name} "
                f"({self.data.fingerprint[:12]}); choose another `out`"
            )

    def find(self, key: str) -> EvalResult | None:
        """What was measured under a key, if it was."""
        path = self.path / MODELS / key / RESULT
        if not path.is_file():
            return None
        result = EvalResult.read(path)
        rows = read_table(self.path / TABLE)
        if not any(
            row.get("key") == key and not row.get("error") for row in rows
        ):  # it died before its row was written
            self._put([result_row(result)])
        return result

    def name_for(self, model: str, key: str, provider: str) -> str:
        """The name of a model in the table: its own, or with provider or key where another result bears that."""
        taken = {
            row["model"] for row in read_table(self.path / TABLE) if row.get("key") != key and not row.get("error")
        }
        names = (model, f"{model} ({provider})", f"{model}@{key[:6]}")
        return next((name for name in names if name not in taken), names[-1])

    def add(self, result: EvalResult, predictions: Predictions, logits: Array | None = None) -> None:
        """Keep a result, in place of one that was measured before under its key.

        Args:
            result: The result.
            predictions: What was answered.
            logits: ``(N, C)`` in the order of the result's labels, for ``logits.npz``.
        """
        self._begin()
        target = self.path / MODELS / result.key
        with self._lock, new_folder(target, replace=RESULT) as temporary:
            predictions.write(temporary / PREDICTIONS)
            if logits is not None:
                labels = predictions.scores.labels
                np.savez(temporary / LOGITS, logits=logits, labels=labels, ids=np.array(predictions.ids))
            result.write(temporary / RESULT)
        self._put([result_row(result)])

    def update(self, result: EvalResult) -> None:
        """Write a result of which more is known now; its predictions stay."""
        result.write(self.path / MODELS / result.key / RESULT)
        self._put([result_row(result)])

    def has_logits(self, key: str) -> bool:
        """Whether all logits were kept of what was measured under a key."""
        return (self.path / MODELS / key / LOGITS).is_file()

    def fail(self, failed: Sequence[FailedModel]) -> None:
        """Keep the reasons why classifiers could not be measured; the next evaluation tries again."""
        self._begin()
        self._put([failed_row(one) for one in failed])

    def rank(self) -> None:
        """Write into the table which classifiers are tied with the best."""
        with self._lock:
            correct = load_results(self.path).correct()
            places = standings(correct) if correct else []
            found: dict[str, Row] = {
                place.name: {"rank": place.rank, "tied": place.tied, "p_holm": f"{place.p:.6g}"} for place in places
            }
            rows: list[Row] = [
                {**row, **(found.get(row["model"], {}) if row.get("key") and not row.get("error") else {})}
                for row in read_table(self.path / TABLE)
            ]
            write_table(self.path / TABLE, rows)

    def _put(self, new: Sequence[Row]) -> None:
        """Add rows, or replace those of the same key, or of the same classifier where it had failed.

        Columns that this version does not know stay as they are.
        """
        with self._lock:
            rows: list[Row] = [{**row} for row in read_table(self.path / TABLE)]
            for row in new:
                rows = _with(rows, row)
            write_table(self.path / TABLE, rows)


def forget(path: Path, keys: Collection[str]) -> None:
    """Take results out of a folder: what they measured is not there any more."""
    with FileLock(path / LOCK):
        write_table(path / TABLE, [row for row in read_table(path / TABLE) if row.get("key") not in keys])
        for key in keys:
            shutil.rmtree(path / MODELS / key, ignore_errors=True)


def _is_other(path: Path) -> bool:
    """Whether it is nothing that stands in a folder of results, as one of an older version is."""
    return not path.name.startswith(".") and path.name not in (TABLE, MODELS)


def _with(rows: list[Row], row: Row) -> list[Row]:
    """The rows with one more, or with one in the place of what it replaces."""
    same = [
        index
        for index, old in enumerate(rows)
        if old.get("key") == row["key"] or (old.get("error") and old["model"] == row["model"])
    ]
    if same:
        stay = () if row.get("error") else RANKING
        row = {name: value for name, value in rows[same[0]].items() if name in stay or name not in COLUMNS} | row
    kept = [old for index, old in enumerate(rows) if index not in same]
    kept.insert(same[0] if same else len(kept), row)
    return kept

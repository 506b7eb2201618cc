"""The folder of results, into which several evaluations may write at once."""

from pathlib import Path
from typing import Any

from filelock import FileLock

from ...models.errors import InputError
from ...models.files import new_folder, read_json
from ..result import EvalResult, FailedModel
from ..statistics import standings
from .predictions import Predictions
from .reading import DATA, LOCK, MODELS, PREDICTIONS, RESULT, TABLE, HeldOutRecord, load_results
from .table import failed_row, read_table, result_row, write_table
from .typed_json import read_typed, write_typed


class ResultsFolder:
    """A folder with results on one held-out set.

    Every change is one file or folder that is whole or not there, made while a lock is held.

    Attributes:
        path: The folder.
        data: The held-out set.
    """

    def __init__(self, path: Path, data: HeldOutRecord) -> None:
        """Make the folder, or go on with one.

        Raises:
            InputError: It holds results on another held-out set.
        """
        self.path, self.data = path, data
        path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path / LOCK)
        with self._lock:
            if not (path / DATA).exists():
                write_typed(path / DATA, data)
            found = read_json(path / DATA)
            if found.get("fingerprint") != data.fingerprint:
                raise InputError(
                    f"{path}: holds results on {found.get('name')} ({str(found.get('fingerprint'))[:12]}), not on "
                    f"{data.name} ({data.fingerprint[:12]}); choose another --out"
                )

    def find(self, key: str) -> EvalResult | None:
        """What was measured under a key, if it was."""
        path = self.path / MODELS / key / RESULT
        if not path.is_file():
            return None
        result = read_typed(path, EvalResult)
        self._put(result_row(result))  # it may have died before its row was written
        return result

    def add(self, result: EvalResult, predictions: Predictions) -> None:
        """Keep a result; one that another process added meanwhile stays."""
        target = self.path / MODELS / result.key
        with self._lock:
            if not target.exists():
                with new_folder(target) as temporary:
                    predictions.write(temporary / PREDICTIONS)
                    write_typed(temporary / RESULT, result)
        self._put(result_row(result))

    def fail(self, failed: FailedModel) -> None:
        """Keep the reason why a classifier could not be measured; the next evaluation tries again."""
        self._put(failed_row(failed))

    def rank(self) -> None:
        """Write into the table which classifiers are tied with the best."""
        with self._lock:
            correct = load_results(self.path).correct()
            places = standings(correct) if correct else []
            found = {
                place.name: {"rank": number, "tied": place.tied, "p_holm": f"{place.p:.6g}"}
                for number, place in enumerate(places, 1)
            }
            rows: list[dict[str, Any]] = [
                row | (found.get(row["model"], {}) if row.get("key") and not row.get("error") else {})
                for row in read_table(self.path / TABLE)
            ]
            write_table(self.path / TABLE, rows)

    def _put(self, row: dict[str, Any]) -> None:
        """Add a row, or replace the one of the same key, or of the same classifier where it had failed."""
        with self._lock:
            rows: list[dict[str, Any]] = list(read_table(self.path / TABLE))
            same = [
                index
                for index, old in enumerate(rows)
                if old.get("key") == row["key"] or (old.get("error") and old["model"] == row["model"])
            ]
            if same and not row.get("error"):
                row = {name: rows[same[0]].get(name, "") for name in ("rank", "tied", "p_holm")} | row
            kept = [old for index, old in enumerate(rows) if index not in same]
            kept.insert(same[0] if same else len(kept), row)
            write_table(self.path / TABLE, kept)

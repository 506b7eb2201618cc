"""Results as they are read: by the report, by comparisons, by anybody."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from ...core.errors import InputError
from ...core.records import read_record
from ..result import EvalResult, FailedModel
from ..statistics import Standing, standings
from .predictions import Predictions, same_rows
from .table import read_table

if TYPE_CHECKING:
    import pandas as pd

    from ..data import HeldOutData

TABLE, DATA, MODELS, RESULT, PREDICTIONS = "results.csv", "data.json", "models", "result.json", "predictions.parquet"
LOCK, LOGITS = ".lock", "logits.npz"


@dataclass(frozen=True)
class HeldOutRecord:
    """The held-out set of a results folder.

    Attributes:
        name: Where it comes from.
        fingerprint: SHA-256 of classes, ids, labels and contents.
        class_names: Its classes, in its order; the first labels of every result.
        n: Inputs, unreadable ones among them.
        source: The keyword arguments of `headsmith.evaluate.data.open_data` that open it again.
        notes: What was found while it was opened, such as images without a label.
    """

    name: str
    fingerprint: str
    class_names: list[str]
    n: int
    source: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True)
class Results:
    """What a results folder holds.

    Attributes:
        path: The folder.
        data: The held-out set.
        models: Measured classifiers, the highest top-1 first.
        failed: Classifiers that could not be measured.
    """

    path: Path
    data: HeldOutRecord
    models: tuple[EvalResult, ...]
    failed: tuple[FailedModel, ...]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[EvalResult]:
        return iter(self.models)

    def __getitem__(self, which: int | str) -> EvalResult:
        """A result by its place, or by the name or key of its model.

        Raises:
            InputError: No such model.
        """
        if isinstance(which, int):
            return self.models[which]
        for result in self.models:
            if which in (result.model, result.key):
                return result
        names = ", ".join(result.model for result in self.models) or "none"
        raise InputError(f"{self.path}: holds no model {which!r}; it holds {names}")

    def predictions(self, which: int | str) -> Predictions:
        """What a classifier answered to each input; read when it is asked for.

        Raises:
            DamagedFileError: The file cannot be read.
        """
        return Predictions.read(self.path / MODELS / self[which].key / PREDICTIONS)

    def correct(self, k: int = 1) -> dict[str, Any]:
        """For each classifier ``(N,)`` bool, whether the right class is among the k best; the best classifier first.

        Raises:
            InputError: They were not measured on the same inputs.
        """
        parts = {result.model: self.predictions(result.key) for result in self.models}
        if parts and not same_rows(list(parts.values())):
            raise InputError(f"{self.path}: not all models were measured on the same inputs; evaluate them again")
        return {name: part.scores.correct(k) for name, part in parts.items()}

    def standings(self, k: int = 1) -> list[Standing]:
        """Who is best and who is tied with the best, by McNemar's test with Holm over all pairs."""
        return standings(self.correct(k))

    def frame(self) -> "pd.DataFrame":
        """``results.csv`` as a pandas frame."""
        import pandas as pd

        return pd.read_csv(self.path / TABLE)

    def image(self, sample: str) -> Image.Image:
        """The image with an id, upright 8-bit RGB, as long as the held-out images lie where they were.

        Raises:
            InputError: It cannot be found or decoded.
        """
        return self._data.image(sample)

    @cached_property
    def _data(self) -> "HeldOutData":
        from ..data import open_data

        return open_data(**self.data.source)


def load_results(folder: str | Path) -> Results:
    """Read a results folder; predictions and images are read when they are asked for.

    Raises:
        InputError: No such folder, or something in it is damaged.
    """
    path = Path(folder)
    if not (path / DATA).is_file():
        raise InputError(f"{path}: holds no results (no {DATA} in it); `headsmith evaluate --out {path}` makes them")
    data = read_record(path / DATA, HeldOutRecord)
    keys = sorted(found.parent.name for found in path.glob(f"{MODELS}/*/{RESULT}"))
    models = [read_record(path / MODELS / key / RESULT, EvalResult) for key in keys]
    models.sort(key=lambda result: (-(result.top1.value if result.top1 else 0), result.model))
    failed = [
        FailedModel(row["model"], row["source"], row["error"], row["key"])
        for row in read_table(path / TABLE)
        if row.get("error")
    ]
    return Results(path, data, tuple(models), tuple(failed))

"""Results as they are read: by the report, by comparisons, by anybody."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from ...core.errors import DamagedFileError, InputError, near
from ...core.printable import printable
from ...core.records import to_json
from ...core.spreadsheet_cells import text_of
from ...export.runtime import Array
from ...metrics.proportions import top_k
from ..held_out_record import HeldOutRecord
from ..metrics import class_table, reliability, selective, summarize
from ..result import EvalResult, FailedModel
from ..statistics import Standing, standings
from .predictions import Predictions, same_rows
from .table import OLD, figures, read_table

if TYPE_CHECKING:
    import pandas as pd

    from ...export.held_out import HeldOut

TABLE, DATA, MODELS, RESULT, PREDICTIONS = "results.csv", "data.json", "models", "result.json", "predictions.parquet"
LOCK, LOGITS = ".lock", "logits.npz"
LISTED = 6


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
        """A result by its place, by the name or key of its model, or by what was given to `evaluate_classifiers`.

        Raises:
            InputError: No such model, one that failed, or several.
        """
        if isinstance(which, int):
            if not -len(self.models) <= which < len(self.models):
                raise InputError(f"{self.path}: holds no model {which}; it holds {len(self.models)}")
            return self.models[which]
        known = [result for result in self.models if which in (result.model, result.key)]
        known = known or [result for result in self.models if _is_source(which, result.source)]
        known = known or [result for result in self.models if _is_source(Path(which).name, result.source)]
        if len(known) == 1:
            return known[0]
        for failed in self.failed:
            if not known and (which in (failed.model, failed.key) or _is_source(which, failed.source)):
                raise InputError(
                    f"{self.path}: {which!r} failed in this evaluation ({failed.error}); evaluate it again"
                )
        names = ", ".join(printable(result.model) for result in known or self.models) or "none"
        if known:
            raise InputError(f"{self.path}: {which!r} could be {names}; name one of these")
        hint = near(which, [name for result in self.models for name in (result.model, result.source)])
        raise InputError(f"{self.path}: holds no model {which!r}; it holds {names}{hint}")

    def predictions(self, which: int | str) -> Predictions:
        """What a classifier answered to each input; read when it is asked for.

        Raises:
            DamagedFileError: The file cannot be read.
        """
        result = self[which]
        path = self.path / MODELS / result.key / PREDICTIONS
        found = Predictions.read(path)
        if (len(found.ids), found.scores.num_logits) != (result.n, len(result.labels)):
            raise DamagedFileError(
                f"{path}: {len(found.ids)} rows of {found.scores.num_logits} classes, its {RESULT} says {result.n} of "
                f"{len(result.labels)}; evaluate again"
            )
        _check_counts(found, result, path)
        _check_figures(found, result, path.with_name(RESULT))
        if result.predictions_sha256 not in ("", found.digest):
            raise DamagedFileError(f"{path}: not what the evaluation wrote (hash differs): edited? evaluate again")
        if found.scores.labels.max(initial=-1) >= len(self.data.class_names):
            raise DamagedFileError(
                f"{path}: class {found.scores.labels.max()}, but {DATA} has {len(self.data.class_names)} classes; "
                "evaluate again"
            )
        return found

    def correct(self, k: int = 1) -> dict[str, Array]:
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
        """``results.csv`` as a pandas frame.

        Raises:
            InputError: No such file.
        """
        import pandas as pd

        if not (self.path / TABLE).is_file():
            raise InputError(f"{self.path / TABLE}: not found; evaluate again, which writes it anew")
        frame = pd.read_csv(self.path / TABLE).rename(columns=OLD)
        return frame.map(lambda value: text_of(value) if isinstance(value, str) else value)

    def image(self, sample: str) -> Image.Image:
        """The image with an id, upright 8-bit RGB, as long as the held-out images lie where they were.

        Raises:
            InputError: It cannot be found or decoded.
        """
        return self._data.image(sample)

    @cached_property
    def _data(self) -> "HeldOut":
        from ..open_held_out import open_data

        said = self.data.source
        truth, ids = (path and self._found(path, Path.is_file) for path in (said.truth, said.class_ids))
        return open_data(replace(said, data=self._found(said.data, Path.is_dir), truth=truth, class_ids=ids))

    def _found(self, path: str, is_one: Callable[[Path], bool]) -> str:
        """A relative path from here, or else from a folder that the results lie in, as where the evaluation ran."""
        places = (place / Path(path).expanduser() for place in (Path(), *self.path.resolve().parents))
        return next((str(place) for place in places if is_one(place)), path)


def _is_source(which: str, source: str) -> bool:
    """Whether a name means what was evaluated: the same words, the same path, or the last part of it."""
    return which in (source, Path(source).name, Path(source).stem) or Path(which).absolute() == Path(source).absolute()


def results_folders(folder: Path) -> list[Path]:
    """The results folders at a path: itself, or those in it, up to two levels deep."""
    patterns = (DATA, f"*/{DATA}", f"*/*/{DATA}")
    found = (
        sorted(file.parent for file in folder.glob(pattern) if _holds_results(file.parent)) for pattern in patterns
    )
    return next((folders for folders in found if folders), [])


def _holds_results(folder: Path) -> bool:
    return (folder / TABLE).exists() or (folder / MODELS).exists()


def load_results(folder: str | Path) -> Results:
    """Read a results folder; predictions and images are read when they are asked for.

    Args:
        folder: The folder, or one that holds it and no other.

    Raises:
        InputError: No such folder, several, or something in it is damaged.
    """
    path = Path(folder)
    inside = [] if (path / DATA).is_file() else results_folders(path)
    if len(inside) > 1:
        listed = ", ".join(str(one) for one in inside[:LISTED]) + ", ..." * (len(inside) > LISTED)
        raise InputError(f"{path}: holds {len(inside)} results folders, expected one; name one of {listed}")
    path = inside[0] if inside else path
    if not (path / DATA).is_file():
        raise InputError(f"{path}: holds no results (no {DATA} in it); `headsmith evaluate --out {path}` makes them")
    data = HeldOutRecord.read(path / DATA)
    keys = sorted(found.parent.name for found in path.glob(f"{MODELS}/*/{RESULT}"))
    rows = read_table(path / TABLE)
    _check_listed(path, rows, keys)
    models = [EvalResult.read(path / MODELS / key / RESULT) for key in keys]
    for key, result in zip(keys, models, strict=True):
        _check(result, key, data, path / MODELS / key / RESULT)
    _check_table(path / TABLE, rows, models)
    models.sort(key=lambda result: (-(result.top1.value if result.top1 else 0), result.model))
    failed = [
        FailedModel(row["model"], row.get("source", ""), row["error"], row.get("key", ""))
        for row in rows
        if row.get("error")
    ]
    return Results(path, data, tuple(models), tuple(failed))


def _check_counts(found: Predictions, result: EvalResult, path: Path) -> None:
    """Refuse answers that are not those of which the result has the figures."""
    scores, said = found.scores, result.summary
    pairs = {f"right by top-{k}": (top_k(scores.ranks, k, len(scores.classes)), share) for k, share in said.top.items()}
    counts = {what: tuple(share and share.correct for share in pair) for what, pair in pairs.items()}
    counts["with NaN"] = (int((~scores.answered).sum()), said.nan)
    counts["without a softmax"] = (int(np.isnan(scores.confidences).sum()), said.no_softmax)
    for what, (counted, expected) in counts.items():
        if counted != expected:
            raise DamagedFileError(f"{path}: {counted} rows are {what}, its {RESULT} says {expected}; evaluate again")


def _check_figures(found: Predictions, result: EvalResult, path: Path) -> None:
    """Refuse figures that do not follow from the answers, of whose columns they were computed."""
    scores, said = found.scores, result.summary
    pairs: list[tuple[str, Any, Any]] = [("summary", said, summarize(scores, ks=list(said.top)))]
    if result.classes is not None:
        pairs.append(("classes", result.classes, class_table(scores)))
    pairs += [
        ("reliability", result.reliability, reliability(scores.confidences, scores.correct())),
        ("selective", result.selective, selective(scores.confidences, scores.correct())),
    ]
    for name, written, computed in pairs:
        expected = to_json(computed)
        for field, value in to_json(written).items():
            if not _same(value, expected[field]):
                raise DamagedFileError(
                    f"{path}: {name}.{field}: not what follows from {PREDICTIONS} beside it: edited? evaluate again"
                )


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal but for the rounding of another machine's sums."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-7)
    return bool(one == other)


def _check_listed(path: Path, rows: Sequence[Mapping[str, str]], keys: Sequence[str]) -> None:
    """Refuse a table that lists a measured classifier whose result is not there any more."""
    lost = next((row for row in rows if row.get("key") and not row.get("error") and row["key"] not in keys), None)
    if lost is not None:
        raise DamagedFileError(
            f"{path / MODELS / lost['key'] / RESULT}: not found, but {TABLE} lists {lost['model']!r}; evaluate it "
            "again into this folder, or delete its row"
        )


def _check_table(path: Path, rows: Sequence[Mapping[str, str]], models: Sequence[EvalResult]) -> None:
    """Refuse a table whose figures are not those of the results."""
    measured = {row.get("key"): row for row in rows if not row.get("error")}
    for result in models:
        row = measured.get(result.key, {})
        for column, value in figures(result.summary).items():
            found = row.get(column)
            if found is not None and not _says(found, value):
                said = "none" if value is None else value
                raise DamagedFileError(
                    f"{path}: {result.model}: {column}: {found!r} found, its {RESULT} says {said}: edited? evaluate "
                    "again"
                )


def _says(text: str, value: float | None) -> bool:
    """Whether a cell holds a number, but for the rounding of a sum; an empty one holds none."""
    if value is None or not text:
        return value is None and not text
    try:
        return _same(float(text), value)
    except ValueError:
        return False


def _check(result: EvalResult, key: str, data: HeldOutRecord, path: Path) -> None:
    """Refuse a result that is not of this folder."""
    for field, found, expected in (
        ("key", result.key, key),
        ("labels", result.labels[: len(data.class_names)], data.class_names),
    ):
        if found != expected:
            raise DamagedFileError(f"{path}: {field}: not that of the folder; evaluate again into another --out")
    if result.n + len(result.unreadable) > data.n:
        raise DamagedFileError(
            f"{path}: summary.n: found {result.n}, expected at most {data.n}, the inputs of {DATA}; evaluate again"
        )

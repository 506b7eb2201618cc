"""Two classifiers on the same inputs: who is better where, by how much, and whether that is real."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.arguments import typed
from ..core.errors import InputError
from ..core.files import check_replaceable, make_folder, new_file
from ..core.spreadsheet_cells import cell
from .metrics.row_scores import Array
from .result import EvalResult
from .results import Predictions, load_results
from .results.predictions import same_rows
from .results.reading import DATA
from .statistics import PairedDifference, bootstrap_difference, holm, paired_difference
from .zoo.external_class_names import meaning


@dataclass(frozen=True)
class TopK:
    """Both classifiers by their k best answers.

    Attributes:
        k: How many answers count.
        first: Accuracy of the first.
        second: Accuracy of the second.
        paired: First minus second.
        bootstrap: 95 % percentile interval of the difference over 10,000 draws of the inputs.
    """

    k: int
    first: float
    second: float
    paired: PairedDifference
    bootstrap: tuple[float, float]


@dataclass(frozen=True)
class Part:
    """Both classifiers by their first answer, on the inputs of a class or a group.

    Attributes:
        name: The class or the group.
        paired: First minus second.
        p: McNemar's p-value by Holm over all classes, or all groups.
    """

    name: str
    paired: PairedDifference
    p: float


@dataclass(frozen=True)
class ChangedAnswer:
    """An input whose first answers differ; an answer is ``None`` for a row with NaN, and so is its probability.

    NaN is equal to nothing, so a row that neither answers is among them.
    """

    id: str
    label: str
    first: str | None
    first_probability: float | None
    first_right: bool
    second: str | None
    second_probability: float | None
    second_right: bool


@dataclass(frozen=True)
class Comparison:
    """The paired story of two classifiers.

    Attributes:
        first: Name of the first.
        second: Name of the second.
        data: Where the inputs come from.
        n: Inputs.
        top: By the k best answers, for each k that was measured of both.
        classes: By class, the largest differences first; none where inputs may have several right classes.
        groups: By group, by name; none where the data has no groups.
        flips: Inputs with different first answers: those that one of both has right, then the others, in the order of
            the data.
    """

    first: str
    second: str
    data: str
    n: int
    top: list[TopK]
    classes: list[Part]
    groups: list[Part]
    flips: list[ChangedAnswer]


@typed
def compare(
    first: str, second: str, *, results: str | Path = Path("results"), out: str | Path | None = None
) -> Comparison:
    """Compare two classifiers that were evaluated on the same held-out set.

    Args:
        first: The name of a model in ``results``, or a folder with the results of one model alone.
        second: The other one, likewise.
        results: Results folder.
        out: CSV file for all inputs with different first answers; one that `compare` wrote is replaced, nothing else.

    Raises:
        InputError: No such model, a folder with several, or they were not measured on the same inputs; or ``out`` is
            something else.
    """
    (one, answers), (other, others) = _find(first, results), _find(second, results)
    if one.setup.data_sha256 != other.setup.data_sha256 or not same_rows([answers, others]):
        raise InputError(
            f"{first} was measured on {one.n:,} inputs of {one.setup.data}, {second} on {other.n:,} of "
            f"{other.setup.data}, and these are not the same; evaluate both on the same data"
        )
    names = (one.model, other.model) if one.model != other.model else (first, second)
    ks = [k for k in sorted(one.summary.top) if one.summary.top[k] and other.summary.top.get(k)]
    found = Comparison(
        *names,
        data=one.setup.data,
        n=one.n,
        top=[_top_k(k, answers, others) for k in ks],
        classes=[] if answers.scores.multi_label else _classes(answers, others, one.labels),
        groups=[] if answers.groups is None else _groups(answers, others),
        flips=_flips(one, answers, other, others),
    )
    if out is not None:
        _write_flips(Path(out), found.flips)
    return found


def _find(which: str, results: str | Path) -> tuple[EvalResult, Predictions]:
    if not os.path.isfile(Path(which) / DATA):  # noqa: PTH113  # a name too long for a path is no file
        folder = load_results(results)
        return folder[which], folder.predictions(which)
    folder = load_results(which)
    if len(folder) != 1:
        names = ", ".join(result.model for result in folder) or "none"
        raise InputError(
            f"{which}: holds {len(folder)} models ({names}), expected one; name it, with --results {which}"
        )
    return folder[0], folder.predictions(0)


def _top_k(k: int, first: Predictions, second: Predictions) -> TopK:
    one, other = first.scores.correct(k), second.scores.correct(k)
    paired, interval = paired_difference(one, other), bootstrap_difference(one, other)
    return TopK(k, float(one.mean()), float(other.mean()), paired, interval)


def _classes(first: Predictions, second: Predictions, names: Sequence[str]) -> list[Part]:
    parts = _parts(first, second, first.scores.labels, names)
    return sorted(parts, key=lambda part: -abs(part.paired.difference))


def _groups(first: Predictions, second: Predictions) -> list[Part]:
    names, codes = np.unique(np.array(first.groups), return_inverse=True)
    return _parts(first, second, codes, names.tolist())


def _parts(first: Predictions, second: Predictions, codes: Array, names: Sequence[str]) -> list[Part]:
    """Both on the rows of each code that occurs."""
    one, other = first.scores.correct(), second.scores.correct()
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    found = [paired_difference(one[rows], other[rows]) for rows in np.split(order, starts[1:])]
    adjusted = holm(np.array([paired.p for paired in found]))
    return [Part(names[code], paired, float(p)) for code, paired, p in zip(present, found, adjusted, strict=True)]


def _flips(one: EvalResult, first: Predictions, other: EvalResult, second: Predictions) -> list[ChangedAnswer]:
    labels = first.scores.labels
    answers = [[*part.labels, None] for part in (one, other)]
    best = [predictions.scores.topk_indices[:, 0] for predictions in (first, second)]
    right = [predictions.scores.correct() for predictions in (first, second)]
    sure = [predictions.scores.confidences for predictions in (first, second)]
    names = [np.array(known, dtype=object)[index] for known, index in zip(answers, best, strict=True)]
    means = [np.array([name and meaning(name) for name in known], dtype=object) for known in answers]
    answered = first.scores.answered & second.scores.answered
    rows = np.flatnonzero((means[0][best[0]] != means[1][best[1]]) | ~answered)
    rows = rows[np.argsort(right[0][rows] == right[1][rows], kind="stable")]
    return [
        ChangedAnswer(
            first.ids[row],
            one.labels[labels[row]],
            *(names[0][row], _known(sure[0][row]), bool(right[0][row])),
            *(names[1][row], _known(sure[1][row]), bool(right[1][row])),
        )
        for row in rows
    ]


def _known(probability: float) -> float | None:
    return None if np.isnan(probability) else float(probability)


def _write_flips(path: Path, flips: Sequence[ChangedAnswer]) -> None:
    check_replaceable(path, ",".join(ChangedAnswer.__annotations__), "a CSV file of `headsmith compare`")
    make_folder(path.parent)
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ChangedAnswer.__annotations__), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in vars(flip).items()} for flip in flips)

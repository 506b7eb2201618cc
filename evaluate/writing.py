"""The files of an evaluation, each of them whole or not there."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..models.files import new_file, write_json
from .measurement import Measurement
from .old_result import EvalResult


def write_results(folder: Path, result: EvalResult, measured: Measurement, labels: Sequence[str]) -> None:
    """Write what was measured; files of an earlier evaluation in ``folder`` are replaced.

    - ``results.json``: every field of `EvalResult`
    - ``results.csv``: one row, see `EvalResult.row`
    - ``predictions.csv``: for each input its id, its label, the rank of that label among the answers (1 is right;
      empty for a row with NaN), and the k best labels with their scores
    - ``logits.npz``: where logits were kept, ``logits``, ``labels`` and ``ids``
    """
    folder.mkdir(parents=True, exist_ok=True)
    row = result.row()
    _write_csv(folder / "results.csv", list(row), [list(row.values())])
    k = measured.topk_indices.shape[1]
    header = ["id", "label", "rank", *(f"{name}{rank}" for rank in range(1, k + 1) for name in ("label", "score"))]
    _write_csv(folder / "predictions.csv", header, _predictions(measured, labels))
    if measured.logits is not None:
        with new_file(folder / "logits.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, logits=measured.logits, labels=measured.labels, ids=np.array(measured.ids))
    write_json(folder / "results.json", asdict(result))


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _predictions(measured: Measurement, labels: Sequence[str]) -> Iterable[list[Any]]:
    columns = (measured.ids, measured.labels, measured.ranks, measured.topk_indices, measured.topk_scores)
    for sample, label, rank, indices, scores in zip(*columns, strict=True):
        answers = [
            value for index, score in zip(indices, scores, strict=True) for value in (labels[index], f"{score:.6f}")
        ]
        yield [sample, labels[label], "" if rank >= len(labels) else rank + 1, *answers]

"""What a classifier answered to each input, in one parquet file."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...core.errors import DamagedFileError, InputError
from ...core.files import new_file, parse_json, regular_file
from ...core.printable import printable
from ..metrics import RowScores

LISTS = ("topk_indices", "topk_scores", "topk_logits")
PLAIN = {
    "label": "labels",
    "rank": "ranks",
    "log_probability": "log_probabilities",
    "sum_of_squares": "sum_of_squares",
}
ABOUT = b"headsmith.predictions"
_ROUNDING = 1e-3
FLOATS, LONGEST = ("topk_scores", "topk_logits", "log_probabilities", "sum_of_squares"), 200
LISTED = 12


@dataclass(frozen=True)
class Predictions:
    """What a classifier answered, input by input in the order of the data.

    Attributes:
        ids: N sample ids.
        scores: What is kept of each row; classes are indices into the result's ``labels``.
        groups: The group of each input, or ``None`` where the data has no groups.
    """

    ids: list[str]
    scores: RowScores
    groups: list[str] | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of ids, answers and groups, in hexadecimal: the same however the file is packed."""
        columns = dict(vars(self.scores))
        arrays = {name: columns.pop(name) for name, value in vars(self.scores).items() if isinstance(value, np.ndarray)}
        hashed = hashlib.sha256(json.dumps([self.ids, self.groups, columns], sort_keys=True).encode())
        for name, value in sorted(arrays.items()):
            hashed.update(f"{name} {value.dtype.str} {value.shape}".encode())
            hashed.update(np.ascontiguousarray(value).tobytes())
        return hashed.hexdigest()

    def write(self, path: Path) -> None:
        """Write one row an input.

        Columns: ``id``, ``label``, ``rank`` (how many classes come before the label; 0 is right), ``topk_indices``,
        ``topk_scores`` (softmax), ``topk_logits``, ``max_probability``, ``log_probability`` (of the label),
        ``sum_of_squares`` (of all probabilities) and ``group``.
        """
        columns: dict[str, Any] = {"id": self.ids}
        columns |= {name: getattr(self.scores, field) for name, field in PLAIN.items()}
        columns |= {name: _lists(getattr(self.scores, name)) for name in LISTS}
        columns["max_probability"] = self.scores.confidences
        columns["group"] = pa.nulls(len(self.ids), pa.string()) if self.groups is None else self.groups
        about = {
            "classes": self.scores.classes.tolist(),
            "num_logits": self.scores.num_logits,
            "several": self.scores.multi_label,
        }
        table = pa.table(columns).replace_schema_metadata({ABOUT: json.dumps(about)})
        with new_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    @classmethod
    def read(cls, path: Path) -> "Predictions":
        """Read what `write` wrote.

        Raises:
            DamagedFileError: Not such a file.
        """
        try:
            table = pq.read_table(pa.BufferReader(regular_file(path).read_bytes()))
            _check_columns(table, path)
            table.validate(full=True)
            about = parse_json(table.schema.metadata[ABOUT])
            scores = RowScores(
                **{field: table[name].to_numpy() for name, field in PLAIN.items()},
                **{name: _matrix(table[name]) for name in LISTS},
                classes=np.array(about["classes"]),
                num_logits=about["num_logits"],
                multi_label=about["several"],
            )
            groups = None if table["group"].null_count else table["group"].cast(pa.string()).to_pylist()
            ids = table["id"].cast(pa.string()).to_pylist()
            _check(scores, ids)
            sure = table["max_probability"].to_numpy()
            if not np.array_equal(sure, scores.confidences, equal_nan=True):
                raise ValueError("max_probability: not the first of topk_scores")
        except InputError:
            raise
        except (OSError, pa.ArrowException, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = printable(" ".join(str(error).split())[:LONGEST])
            raise DamagedFileError(f"{path}: cannot be read as predictions ({reason}); evaluate again") from None
        return cls(ids, scores, groups)


def _check_columns(table: pa.Table, path: Path) -> None:
    """Refuse another table than one of predictions: one that lacks a column, or has it in another kind.

    Raises:
        DamagedFileError: It is one.
    """
    expected = ("id", *PLAIN, *LISTS, "max_probability", "group")
    missing = [name for name in expected if name not in table.column_names]
    if missing:
        found = ", ".join(printable(name) for name in table.column_names[:LISTED]) or "none"
        found += f" and {len(table.column_names) - LISTED} more" * (len(table.column_names) > LISTED)
        raise DamagedFileError(
            f"{path}: columns {found} found, {', '.join(missing)} missing, expected what `headsmith evaluate` writes; "
            "evaluate again"
        )
    for name in LISTS:
        if not pa.types.is_fixed_size_list(table.schema.field(name).type):
            raise DamagedFileError(
                f"{path}: {name}: {table.schema.field(name).type} found, expected lists of one length; evaluate again"
            )
    if ABOUT not in (table.schema.metadata or {}):
        raise DamagedFileError(
            f"{path}: has no note {ABOUT.decode()}, which says what its classes are; it was written by something else: "
            "evaluate again"
        )


def _lists(values: np.ndarray[Any, Any]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _matrix(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    rows = column.combine_chunks()
    found: np.ndarray[Any, Any] = rows.flatten().to_numpy().reshape(len(column), -1)
    return found


def same_rows(parts: Sequence[Predictions]) -> bool:
    """Whether all are answers to the same inputs in the same order."""
    return all(part.ids == parts[0].ids for part in parts)


def _check(scores: RowScores, ids: Sequence[str | None]) -> None:
    """Raise a `ValueError` for columns that contradict each other."""
    if None in ids or not ids:
        raise ValueError("id: found rows without one, expected one a row")
    for name, column in vars(scores).items():
        if not isinstance(column, np.ndarray):
            continue
        kind = "f" if name in FLOATS else "iu"
        if column.dtype.kind not in kind:
            raise ValueError(f"{name}: found {column.dtype}, expected {'numbers' if kind == 'f' else 'whole numbers'}")
    if type(scores.num_logits) is not int or type(scores.multi_label) is not bool:
        raise ValueError(f"{ABOUT.decode()}: found {scores.num_logits!r} classes, expected a whole number")
    for name, low in (("labels", 0), ("topk_indices", -1), ("classes", 0), ("ranks", 0)):
        column = getattr(scores, name)
        if not ((column >= low) & (column <= scores.num_logits - (name != "ranks"))).all():
            raise ValueError(f"{name}: found classes outside of 0..{scores.num_logits - 1}")
    for name in ("topk_scores", "sum_of_squares"):
        column = getattr(scores, name)
        column = column[~np.isnan(column)]  # of a row without a softmax
        if ((column < 0) | (column > 1 + _ROUNDING)).any():
            raise ValueError(f"{name}: found {column.min():g} to {column.max():g}, expected probabilities of 0 to 1")
    if (scores.log_probabilities > _ROUNDING).any():
        raise ValueError(f"log_probabilities: found {scores.log_probabilities.max():g}, expected 0 or below")
    shapes = {getattr(scores, name).shape for name in LISTS}
    if len(shapes) != 1 or not 1 <= next(iter(shapes))[1] <= scores.num_logits:
        raise ValueError(f"{', '.join(LISTS)}: found lists of other lengths")
    _check_ranks(scores)
    _check_probabilities(scores)


def _check_probabilities(scores: RowScores) -> None:
    """Raise a `ValueError` where the label's probability is another one than among the best answers."""
    rows, places = np.nonzero(scores.topk_indices == scores.labels[:, None])
    listed, own = scores.topk_scores[rows, places], np.exp(scores.log_probabilities[rows])
    if not scores.multi_label and (abs(listed - own) > _ROUNDING).any():  # nor where either is NaN
        raise ValueError("log_probabilities: not the logarithms of topk_scores")


def _check_ranks(scores: RowScores) -> None:
    """Raise a `ValueError` where the rank of a label is not its place among the best answers."""
    kept = scores.topk_indices.shape[1]
    hits = scores.topk_indices == scores.labels[:, None]
    places = np.where(hits.any(axis=1), hits.argmax(axis=1), kept)
    wrong = np.flatnonzero(scores.answered & (np.minimum(scores.ranks, kept) != places))
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(f"rank: found {scores.ranks[row]} in row {row}, expected the place of its label")

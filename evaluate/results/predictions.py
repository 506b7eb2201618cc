"""What a classifier answered to each input, in one parquet file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...core.errors import DamagedFileError
from ...core.files import new_file
from ..metrics import RowScores

LISTS = ("topk_indices", "topk_scores", "topk_logits")
PLAIN = {
    "label": "labels",
    "rank": "ranks",
    "log_probability": "log_probabilities",
    "sum_of_squares": "squares",
}
ABOUT = b"headsmith.predictions"


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
            "several": self.scores.several,
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
            table = pq.read_table(path)
            about = json.loads(table.schema.metadata[ABOUT])
            scores = RowScores(
                **{field: table[name].to_numpy() for name, field in PLAIN.items()},
                **{name: _matrix(table[name]) for name in LISTS},
                classes=np.array(about["classes"]),
                num_logits=about["num_logits"],
                several=about["several"],
            )
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path}: cannot be read as predictions ({error}); evaluate again") from None
        groups = None if table["group"].null_count else table["group"].to_pylist()
        return cls(table["id"].to_pylist(), scores, groups)


def _lists(values: np.ndarray[Any, Any]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _matrix(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    rows = column.combine_chunks()
    found: np.ndarray[Any, Any] = rows.flatten().to_numpy().reshape(len(column), -1)
    return found


def same_rows(parts: Sequence[Predictions]) -> bool:
    """Whether all are answers to the same inputs in the same order."""
    return all(part.ids == parts[0].ids for part in parts)

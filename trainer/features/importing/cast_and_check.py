"""Features from the files into the feature set: block by block, cast, checked, hashed."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError
from ....core.progress import progress
from ..bit_equal_rows import equal_rows, row_hashes
from ..feature_writer import FeatureWriter
from ..images.samples import SPLITS
from ..manifest import FeatureStatistics
from .column_roles import ColumnRoles
from .precision_loss import PrecisionLoss
from .row_columns import Rows
from .table import Array, Column


class Statistics:
    """What is known of the features once all are copied.

    Attributes:
        sha256: By split, of the features' bytes as they are stored.
        lost: What the features' own precision told apart, and that of the feature set does not.
    """

    def __init__(self, lost: PrecisionLoss) -> None:
        self.lost = lost
        self._low, self._high, self._norms, self._rows = float("inf"), float("-inf"), 0.0, 0
        self._hashes: dict[str, hashlib._Hash] = {}
        self._rows_hashes: list[Array] = []

    def widen(self, low: float, high: float) -> None:
        """Look at the smallest and largest value of some rows."""
        self._low, self._high = min(self._low, low), max(self._high, high)

    def add(self, split: str, block: torch.Tensor) -> None:
        """Look at rows ``(n, D)`` of a split."""
        self._norms += float(torch.linalg.vector_norm(block.float(), dim=1).double().sum())
        self._rows += len(block)
        self._hashes.setdefault(split, hashlib.sha256()).update(block.numpy().data)

    def keep(self, block: Array) -> None:
        """Look at what rows ``(n, D)`` are, in the order of the source; those of zeros are not copies."""
        self._rows_hashes.append(np.where(block.any(axis=1), row_hashes(block), np.uint64(0)))

    def warnings(self, rows: Rows, features: Column) -> list[CodedWarning]:
        """The warnings of rows that are equal, and of what is lost.

        Args:
            rows: The rows that were copied.
            features: Names the columns.
        """
        equal = equal_rows(np.concatenate(self._rows_hashes), rows.splits, rows.labels)
        return [*equal, *self.lost.warnings(features)]

    @property
    def sha256(self) -> dict[str, str]:
        """By split, the hash of the features' bytes."""
        return {split: found.hexdigest() for split, found in self._hashes.items()}

    def summary(self) -> FeatureStatistics:
        """Smallest and largest value and mean Euclidean norm."""
        return FeatureStatistics(self._low, self._high, self._norms / max(1, self._rows))


def copy_features(
    chosen: Sequence[ColumnRoles], rows: Rows, sinks: Mapping[str, FeatureWriter], dtype: str, *, unusable: bool = False
) -> Statistics:
    """Copy every row to the sink of its split, in order.

    Args:
        chosen: The columns of every table.
        rows: The rows of all tables.
        sinks: By split.
        dtype: ``float16`` or ``float32``.
        unusable: Keep NaN and infinite features, for who looks at them.

    Raises:
        InputError: A NaN or infinite feature that is not to be kept, one beyond ``dtype``, or a file that ends early.
    """
    statistics, start = Statistics(PrecisionLoss([one.features.dtype for one in chosen], dtype)), 0
    with progress("Importing", len(rows.labels), "rows") as advance:
        for one in chosen:
            first = start
            for block in one.features.blocks():
                values = _values(block, one, start - first)
                stored = values.to(getattr(torch, dtype))
                low, high = (float(bound) for bound in torch.aminmax(stored))
                if not (math.isfinite(low) and math.isfinite(high)):
                    _check(values, stored, one, start - first, unusable)
                statistics.widen(low, high)
                statistics.keep(stored.numpy())
                statistics.lost.look(values.numpy(), stored.numpy())
                for split, part in _parts(stored, rows.splits[start : start + len(block)]):
                    sinks[split].append(part.numpy())
                    statistics.add(split, part)
                start += len(block)
                advance(len(block))
            if start - first != one.features.shape[0]:
                raise InputError(
                    f"{one.table.name}: {one.features.name} ends after {start - first} of {one.features.shape[0]} rows"
                )
    return statistics


def _parts(block: torch.Tensor, splits: Array) -> Iterator[tuple[str, torch.Tensor]]:
    """The rows of each split in a block."""
    for code in np.unique(splits):
        here = np.flatnonzero(splits == code)
        yield SPLITS[code], block if len(here) == len(block) else block.index_select(0, torch.from_numpy(here))


def _values(block: Array, chosen: ColumnRoles, first: int) -> torch.Tensor:
    if block.shape[1] != chosen.features.shape[1]:
        where = f"{chosen.table.name}: {chosen.features.name}"
        raise InputError(f"{where}: has {block.shape[1]} values in row {first}, expected {chosen.features.shape[1]}")
    return torch.from_numpy(np.array(block, order="C"))


def _check(values: torch.Tensor, stored: torch.Tensor, chosen: ColumnRoles, first: int, unusable: bool) -> None:
    finite = values.isfinite()
    if not unusable and not finite.all():
        what, remedy = "NaN or infinite features in {rows}", "remove these rows or compute them again"
        raise _refused(values, ~finite, chosen, first, ("a finite number", what, remedy))
    lost = finite & ~stored.isfinite()
    if not lost.any():
        return
    largest, most = float(values[lost].abs().max()), torch.finfo(torch.float32).max
    limit, remedy = "float16's 65504", "store them with --dtype float32"
    if largest > most:
        limit, remedy = f"float32's {most:.3g}", "divide the features by a constant, or remove these rows"
    what = f"{largest:g} in {{rows}} is beyond {limit}"
    raise _refused(values, lost, chosen, first, (f"at most {limit}", what, remedy))


def _refused(
    values: torch.Tensor, wrong: torch.Tensor, chosen: ColumnRoles, first: int, words: tuple[str, str, str]
) -> InputError:
    """The error for features that cannot be kept: by line and cell where the file is text, else by row and column.

    Args:
        values: ``(n, D)``.
        wrong: Which of them.
        chosen: Where they are from.
        first: The row of the file that is the first of them.
        words: What was expected; what is there, with a place for the rows; what to do.
    """
    features, (expected, what, remedy) = chosen.features, words
    rows = wrong.any(dim=1)
    row, column = wrong.nonzero()[0].tolist()
    if features.place is not None:
        more = f" ({int(rows.sum())} such rows nearby)" if rows.sum() > 1 else ""
        return InputError(f"{features.place(first + row, column)} found{more}, expected {expected}; {remedy}")
    told = f"{chosen.table.name}: {features.name}: {what.format(rows=_rows(rows, first))}; {remedy}"
    return InputError(f"{told} (the first is {values[row, column]:g} in {features.part(column)})")


def _rows(marked: torch.Tensor, first: int, most: int = 5) -> str:
    found = [str(first + row) for row in marked.nonzero().flatten().tolist()]
    more = f" and {len(found) - most} more nearby" if len(found) > most else ""
    return f"row{'s' if len(found) > 1 else ''} {', '.join(found[:most])}{more}"

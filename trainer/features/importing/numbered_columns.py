"""Features with a column for each: ``f0``, ``f1``, ... of a table are one matrix, called ``f*``."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....core.coded_warnings import CodedWarning
from ....core.listed import listed
from ....core.printable import short
from .table import Array, Batches, Column, block_rows

NUMBERED = re.compile(r"(.*?)(\d+)")
_NO_FEATURE = re.compile(r"(label|target|class|y|id|group|split)s?_?$", re.IGNORECASE)
_NUMBER = re.compile(r"float\d+|u?int\d+")


def with_matrices(columns: Sequence[Column], batches: Batches) -> list[Column]:
    """The columns of a table, those that are numbered without a gap from 0 or 1 put together.

    A run of whole numbers only, such as pixels, counts where there is no other, and is not called as labels or ids are.

    Args:
        columns: All of the table, one value a row each.
        batches: From column names to the rows in order.
    """
    runs = _runs(columns)
    matrix = {prefix: run for prefix, run in runs.items() if _is_matrix(run)}
    real = {prefix: run for prefix, run in matrix.items() if any(one.dtype.startswith("float") for one in run.values())}
    if not real and not any(len(column.shape) == 2 for column in columns):
        real = {prefix: run for prefix, run in matrix.items() if not _NO_FEATURE.match(prefix)}
    found = {prefix: [run[number] for number in sorted(run)] for prefix, run in real.items()}
    used = {column.name for run in found.values() for column in run}
    matrices = [_matrix(f"{prefix}*", run, batches) for prefix, run in found.items()]
    return [*matrices, *(column for column in columns if column.name not in used)]


def gap(columns: Sequence[Column]) -> str:
    """Which number keeps columns from being a matrix, in words; nothing where more numbers lack than are there."""
    names = {column.name: column for column in columns}
    for prefix, run in _runs(columns).items():
        first, last = min(1, *run), max(run)
        lacking = last - first + 1 - len(run)
        if _NO_FEATURE.match(prefix) or not 0 < lacking <= len(run):
            continue
        number = next(number for number in range(first, last) if number not in run)
        digits = min(len(column.name) for column in run.values()) - len(prefix)  # 01 and f1 alike
        name = f"{prefix}{number:0{digits}}"
        more = f" and {lacking - 1:,} more" if lacking > 1 else ""
        said = f"holds {names[name].dtype}" if name in names else "is missing"
        return f"{short(name)}{more} {said}"
    return ""


def left_of_series(features: Column, others: Sequence[Column]) -> list[CodedWarning]:
    """Warnings of columns beside a series that may have been meant as features.

    Such are those that are called like it and hold no numbers, and those of floats that are called otherwise.
    """
    prefix = features.name.removesuffix("*")
    alike = [one for one in others if (match := NUMBERED.fullmatch(one.name)) and match[1] == prefix]
    numbers = [one for one in others if len(one.shape) == 1 and re.fullmatch(r"float\d+", one.dtype)]
    found = []
    if features.parts and numbers:
        message = (
            f"{listed([short(one.name) for one in numbers])} hold numbers and are not among the features "
            f"{features.name}, whose names go on by number: rename to use them"
        )
        found.append(CodedWarning("left-out-number", message))
    if not features.parts or not alike:
        return found
    first = alike[0]
    held = f"holds {first.dtype}" if first.place is None else f"is no number: {first.place(0, 0)}"
    more = f", and {len(alike) - 1:,} more like it" * (len(alike) > 1)
    message = f"{short(first.name)} {held}{more}; it is not among the features {features.name}: correct or rename it"
    return [CodedWarning("left-out-feature", message), *found]


def _runs(columns: Sequence[Column]) -> dict[str, dict[int, Column]]:
    """Columns of numbers by what stands before the number of their name, and by that."""
    runs: dict[str, dict[int, Column]] = defaultdict(dict)
    for column in columns:
        if (match := NUMBERED.fullmatch(column.name)) and _NUMBER.fullmatch(column.dtype):
            runs[match[1]].setdefault(int(match[2]), column)
    return runs


def _is_matrix(run: dict[int, Column]) -> bool:
    first = min(run)
    return len(run) > 1 and first in (0, 1) and max(run) == first + len(run) - 1


def _matrix(name: str, run: Sequence[Column], batches: Batches) -> Column:
    dtype = np.result_type(*(column.dtype for column in run))
    dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
    names = [column.name for column in run]
    shape = (run[0].shape[0], len(run))
    return Column(name, shape, str(dtype), _Stacked(names, dtype, batches), parts=names)


@dataclass(frozen=True)
class _Stacked:
    """The rows of several columns side by side."""

    names: list[str]
    dtype: "np.dtype[np.generic]"
    batches: Batches

    def __call__(self) -> Iterator[Array]:
        """The rows, some at a time."""
        for batch in self.batches(self.names):
            step = block_rows(len(self.names), self.dtype.itemsize)
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                columns = [part.column(name).to_numpy(zero_copy_only=False) for name in self.names]
                yield np.stack(columns, axis=1).astype(self.dtype, copy=False)

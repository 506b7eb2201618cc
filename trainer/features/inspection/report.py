"""What an inspection of a feature set found."""

from dataclasses import dataclass

from ....core.coded_warnings import CodedWarning
from .neighbours import Neighbours
from .row_scan import Found
from .split_coverage import Unanswered


@dataclass(frozen=True)
class SplitReport:
    """One split.

    Attributes:
        rows: How many.
        histogram: Class name to its rows, in the order of the classes.
        nan: Rows with a NaN.
        infinite: Rows with an infinite feature.
        absurd: Rows with a finite feature that is over a million times the usual ones of its column.
        zero: Rows that are zero throughout.
        duplicates: Rows that are equal to an earlier one of the split, but for rounding, or show the same picture; zero
            rows aside.
        unlabelled: Rows whose label is outside of the class names.
        norm: Smallest, mean and largest Euclidean norm of the finite rows; ``None`` where there is none.
        typical_norm: Their median.
        as_written: Whether the features are those that were written; ``None`` where they are in no folder.
        neighbours: How far nearest training rows agree with the labels; ``None`` for train, and where that cannot be
            tried.
    """

    rows: int
    histogram: dict[str, int]
    nan: Found
    infinite: Found
    absurd: Found
    zero: Found
    duplicates: Found
    unlabelled: Found
    norm: tuple[float, float, float] | None
    typical_norm: float | None
    as_written: bool | None
    neighbours: Neighbours | None


@dataclass(frozen=True)
class Inspection:
    """A feature set, examined.

    Attributes:
        path: Its folder.
        classes: How many class names it has.
        feature_dim: D.
        dtype: ``float16`` or ``float32``.
        backbone: The backbone's name; ``None`` for imported features of an unknown one.
        split_rule: How the rows came to be divided.
        splits: The splits.
        empty_classes: Classes without a row.
        leaked_ids: Ids in more than one split.
        leaked_rows: By split, rows that are so equal to one of an earlier split.
        leaked_classes: By split with such rows, the classes all of whose rows are so, and how many rows these are.
        unanswered: By split, rows of classes that have no training row.
        neighbours: Of val, or of test where val has none; see `SplitReport`.
        problems: What would spoil a training or its measurement, each under a code.
        warnings: What would not.
    """

    path: str
    classes: int
    feature_dim: int
    dtype: str
    backbone: str | None
    split_rule: str
    splits: dict[str, SplitReport]
    empty_classes: list[str]
    leaked_ids: Found
    leaked_rows: dict[str, Found]
    leaked_classes: dict[str, dict[str, int]]
    unanswered: dict[str, Unanswered]
    neighbours: Neighbours | None
    problems: list[CodedWarning]
    warnings: list[CodedWarning]

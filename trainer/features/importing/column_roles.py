"""Which column holds what: found where only one can, else asked for by name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError, near
from ....core.listed import listed
from ....core.printable import short, shown
from .matrix import check_matrix
from .numbered_columns import gap, left_of_series
from .origin import Origin
from .split_column import says_splits, split_column
from .table import OBJECTS, Column, Table, without_split

_USUAL = {
    "features": {
        "feature",
        "features",
        "embedding",
        "embeddings",
        "image_embedding",
        "image_embeddings",
        "image_embeds",
        "x",
    },
    "labels": {"label", "labels", "target", "targets", "y", "class"},
}
_IDS = {"id", "ids"}


@dataclass(frozen=True)
class Names:
    """The columns that were asked for by name; ``None`` for those to find; and where they come from."""

    features: str | None = None
    labels: str | None = None
    ids: str | None = None
    groups: str | None = None
    origin: Origin = Origin.IMPORT


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a table that are used.

    Attributes:
        asked: What was named: a column of labels that was not was guessed.
    """

    table: Table
    features: Column
    labels: Column
    ids: Column | None
    groups: Column | None
    splits: Column | None
    asked: Names

    @property
    def names(self) -> dict[str, str]:
        """Role to column name, for the manifest."""
        roles = {
            "features": self.features,
            "labels": self.labels,
            "ids": self.ids,
            "groups": self.groups,
            "splits": self.splits,
        }
        return {role: column.name for role, column in roles.items() if column is not None}

    @property
    def warnings(self) -> list[CodedWarning]:
        """What is doubtful about the columns that are not used."""
        used = self.names.values()
        return left_of_series(self.features, [column for column in self.table.columns if column.name not in used])

    @property
    def not_read(self) -> list[str]:
        """The file's other columns."""
        used = self.names.values()
        return [*(column.name for column in self.table.columns if column.name not in used), *self.table.left_out]


def find_roles(table: Table, asked: Names) -> ColumnRoles:
    """Find the columns of a table.

    Raises:
        InputError: None fits or several do (the message lists them), a name that is not there, or columns of different
            length, or a column of splits that names none or others than the file.
    """
    matrices = [column for column in table.columns if _is_features(column)]
    features = _find(table, "features", asked.features, matrices, asked.origin)
    check_matrix(table, features, asked.origin)
    rows, named = features.shape[0], (asked.features, asked.labels, asked.ids, asked.groups)
    splits = split_column(table, rows, other_than=named)
    rest = [column for column in table.columns if column is not features and column is not splits]
    classes = [column for column in rest if column.class_names is not None]
    by_names = len(classes) == 1 and asked.labels is None
    if by_names and (others := [column for column in rest if column not in classes and _called_labels(column, rows)]):
        _ask(table, "labels", [*classes, *others], asked.origin)
    found = replace(table, columns=classes if by_names else rest)
    own = _own_ids(rest, rows)
    possible = [column for column in found.columns if column is not own and _is_labels(column)]
    of_rows = [column for column in possible if column.shape[0] == rows]
    labels = _find(found, "labels", asked.labels, of_rows or possible, asked.origin)
    ids = None if own is None or own is labels else own.needed(table.name)
    ids = _called(table, asked.ids, asked.origin.column("ids")) if asked.ids else ids
    groups = _called(table, asked.groups, asked.origin.column("groups")) if asked.groups else None
    used = splits if splits is not None and says_splits(table, splits, asked.origin) else None
    chosen = ColumnRoles(table, features, labels, ids, groups, used, asked)
    _check_columns(chosen)
    return chosen


def _find(table: Table, role: str, asked: str | None, possible: Sequence[Column], origin: Origin) -> Column:
    flag = origin.column(role)
    if asked is not None:
        return _called(table, asked, flag)
    by_name = [column for column in table.columns if without_split(column.name).lower() in _USUAL[role]]
    for candidates in (possible, [column for column in possible if column in by_name], [] if possible else by_name):
        if len(candidates) == 1:
            return candidates[0].needed(table.name)
    if possible:
        _ask(table, role, possible, origin)
    matrix = "a matrix (N, D) of floats, or columns f0, f1, ... of a table"
    what = matrix if role == "features" else "one whole number or text a row"
    holds = listed([str(column) for column in table.columns], 20)
    usable = any(len(column.shape) == (2 if role == "features" else 1) for column in table.columns)
    todo = f"name them with {flag}" if usable else f"write the {role} into this file too"
    if role == "features" and any(column.dtype.startswith("decimal") for column in table.columns):
        todo = "cast the decimal columns to float32"
    holds = f"others are {holds}: {todo}" if holds else f"it holds nothing else: write the {role} into it"
    if role == "features" and (lacking := gap(table.columns)):
        holds = f"{lacking}, and numbers without a gap from 0 or 1 are expected; {holds}"
    faults = "".join(f"; {column.fault}" for column in table.columns if column.fault)
    raise InputError(f"{table.name}: has no {role} (expected {what}), {holds}{faults}")


def _ask(table: Table, role: str, possible: Sequence[Column], origin: Origin) -> NoReturn:
    names = [column.name for column in possible]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{table.name}: {shown(twice)} found twice; write the file again with one of them")
    several, flag = listed([str(column) for column in possible], 20), origin.column(role)
    raise InputError(f"{table.name}: has several columns that may be {role}: {several}; say which with {flag}")


def _called(table: Table, asked: str, flag: str) -> Column:
    for column in table.columns:
        if asked in (column.name, without_split(column.name)):
            return column.needed(table.name)
    names = [column.name for column in table.columns]
    holds = listed([short(name) for name in names], 20)
    raise InputError(f"{table.name}: {flag} {shown(asked)} found, expected one of {holds}{near(asked, names)}")


def _own_ids(columns: Sequence[Column], rows: int) -> Column | None:
    """The column called ``id``, of text or whole numbers.

    One of numbers that has not one for every row is something else, such as the words of a caption.
    """
    named = [column for column in columns if without_split(column.name).lower() in _IDS]
    found = [
        column
        for column in named
        if column.dtype == "str" or (column.one_a_row and column.shape[0] == rows and _is_whole(column))
    ]
    return found[0] if len(found) == 1 else None


def _is_whole(column: Column) -> bool:
    """Whether a column holds whole numbers, which are floats where some are missing, or what cannot be read."""
    if not re.fullmatch(r"float(32|64)", column.dtype):
        return re.fullmatch(rf"u?int\d+|{OBJECTS}", column.dtype) is not None
    values = column.read()
    given = values[~np.isnan(values)]
    return bool(given.size) and bool((np.isfinite(given) & (given == np.floor(given))).all())


def _is_features(column: Column) -> bool:
    return len(column.shape) == 2 and re.match(r"b?float", column.dtype) is not None


def _is_labels(column: Column) -> bool:
    return column.one_a_row and re.fullmatch(rf"u?int\d+|bool|str|{OBJECTS}", column.dtype) is not None


def _called_labels(column: Column, rows: int) -> bool:
    usual = without_split(column.name).lower() in _USUAL["labels"]
    return usual and _is_labels(column) and column.shape[0] == rows


def _check_columns(chosen: ColumnRoles) -> None:
    where, rows = chosen.table.name, chosen.features.shape[0]
    other = "; or name another column" if chosen.asked.origin is Origin.IMPORT else ""
    others = [column for column in (chosen.labels, chosen.ids, chosen.groups) if column is not None]
    for column in others:
        if not column.one_a_row:
            one_hot = "; take .argmax(1) of one-hot rows" if column is chosen.labels and len(column.shape) == 2 else ""
            raise InputError(f"{where}: {column} has not one value a row, expected shape (N,){one_hot}{other}")
    for column in others:
        if column.shape[0] != rows:
            raise InputError(
                f"{where}: {chosen.features.name} has {rows} rows and {column.name} {column.shape[0]}, "
                "expected one each; nothing says which belong together, so write them again from one source"
            )

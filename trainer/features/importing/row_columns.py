"""All rows of an import without their features: ids, labels, splits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError
from ....core.listed import listed
from ....core.printable import short, shown
from ..images.labels import Labels, index_labels
from ..images.samples import SPLITS
from ..images.spellings import spelt_alike
from ..splitting import divide
from .column_roles import ColumnRoles
from .split_column import split_codes
from .table import Array, Column


@dataclass(frozen=True)
class Rows:
    """Rows in the order of the source.

    Attributes:
        class_names: The classes.
        ids: N ids.
        labels: ``(N,)`` int64.
        splits: ``(N,)`` int8, index into `SPLITS`.
        split_rule: How they came to be divided.
        warnings: Of labels, ids and splits.
    """

    class_names: list[str]
    ids: pa.StringArray
    labels: Array
    splits: Array
    split_rule: str
    warnings: list[CodedWarning]

    def of(self, split: str) -> tuple[pa.StringArray, Array]:
        """Ids and labels of one split, in order."""
        mask = self.splits == SPLITS.index(split)
        return self.ids.filter(pa.array(mask)), self.labels[mask]


def gather(chosen: Sequence[ColumnRoles], class_names: list[str] | None, share: float, seed: int) -> Rows:
    """Read the small columns of every table and divide the rows.

    Raises:
        InputError: Labels that cannot be used, one class, or a division that cannot be made.
    """
    labels_found = [
        Labels(
            f"{one.table.name}: {short(one.labels.name)}",
            one.labels.read(),
            one.labels.class_names or one.table.class_names,
            one.labels.place,
        )
        for one in chosen
    ]
    overridden = _overridden(labels_found, class_names)
    names, labels = index_labels(labels_found, class_names)
    _check_said(chosen)
    given = np.concatenate([_given(one) for one in chosen])
    _check_train(given, chosen)
    ids = pa.concat_arrays([_ids(one) for one in chosen])
    groups = _groups(chosen) if chosen[0].groups is not None else _repeated(ids, given)
    division = divide(given, labels, groups, names, share=share, seed=seed)
    by_column = sorted({one.splits.name for one in chosen if one.splits is not None})
    rule = "; ".join([*(f"split by column {name!r}" for name in by_column), division.rule])
    rows = Rows(names, ids, labels, division.splits, rule, [*overridden, *spelt_alike(names), *division.warnings])
    _check_use(rows, chosen)
    rows.warnings.extend(one.table.warning for one in chosen if one.table.warning is not None)
    rows.warnings.extend(_no_labels(rows, chosen))
    if any(one.ids for one in chosen):
        rows.warnings.extend(_repeated_ids(rows))
    return rows


def _overridden(found: Sequence[Labels], class_names: Sequence[str] | None) -> list[CodedWarning]:
    """A warning of names that were given although the files have their own.

    Raises:
        InputError: Both have a name, at different places: one of them is in another order, and labels would change.
    """
    own = next((labels for labels in found if labels.class_names is not None), None)
    if class_names is None or own is None or own.class_names is None or list(class_names) == own.class_names:
        return []
    places = {name: place for place, name in enumerate(class_names)}
    for place, name in enumerate(own.class_names):
        if places.get(name, place) != place:
            raise InputError(
                f"{own.where}: its own names have {shown(name)} at {place}, --class-names at {places[name]}, so that "
                "labels would mean other classes; leave --class-names out, or correct it"
            )
    pairs = list(zip(own.class_names, class_names, strict=False))
    renamed = [f"{shown(one)} is {shown(other)}" for one, other in pairs if one != other]
    counts = f"{len(class_names):,} class names take the place of the {len(own.class_names):,} of {own.where}"
    return [CodedWarning("replaced-names", f"{counts}{': ' if renamed else ''}{listed(renamed)}")]


def _check_said(chosen: Sequence[ColumnRoles]) -> None:
    silent = [one.table.name for one in chosen if one.table.split is None and one.splits is None]
    if silent and len(silent) < len(chosen):
        raise InputError(
            f"{silent[0]}: has no split, but other files have; name each by its split, such as train=FILE test=FILE"
        )


def _check_train(given: Array, chosen: Sequence[ColumnRoles]) -> None:
    if (given == 0).any():
        return
    found = ", ".join(split for code, split in enumerate(SPLITS) if (given == code).any())
    raise InputError(
        f"{chosen[0].table.name}: no train split, found {found}; add one: give {chosen[0].asked.origin.split('train')}"
    )


def _given(chosen: ColumnRoles) -> Array:
    if chosen.splits is not None:
        return split_codes(chosen.splits)
    return np.full(chosen.features.shape[0], SPLITS.index(chosen.table.split or "train"), np.int8)


def _ids(chosen: ColumnRoles) -> pa.StringArray:
    if chosen.ids is None:
        numbers = pa.array(np.arange(chosen.features.shape[0])).cast(pa.string())
        return pc.binary_join_element_wise(pa.scalar(chosen.table.ids), numbers, "/")
    found = _read(chosen, chosen.ids)
    given = pc.fill_null(pc.not_equal(found, ""), False).to_numpy(zero_copy_only=False)
    if not given.all():
        row = int(np.flatnonzero(~given)[0])
        raise InputError(f"{chosen.ids.where(row, chosen.table.name)}, expected an id in every row; write one there")
    return found


def _read(chosen: ColumnRoles, column: Column) -> pa.Array:
    """The values of ids or groups, as text: of whole numbers their digits, also where gaps made floats of them."""
    try:
        values = _as_arrow(column.read())
        if pa.types.is_floating(values.type):
            values = _whole(values)
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise InputError(f"{chosen.table.name}: {column} cannot be read, expected numbers or text, one a row") from None
    except UnicodeError:  # half a character, which numpy's text may hold
        raise InputError(
            f"{chosen.table.name}: {column.name} has text that UTF-8 cannot write (a lone surrogate); correct it"
        ) from None


def _as_arrow(values: Array) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:  # whole numbers of more than 64 bits, as UUIDs are
        return pa.array([None if value is None else str(value) for value in values])


def _whole(values: pa.Array) -> pa.Array:
    """Floats as whole numbers where all of them are."""
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values


def _groups(chosen: Sequence[ColumnRoles]) -> Array:
    found = [_read(one, one.groups) for one in chosen if one.groups]
    return _codes(pa.concat_arrays(found))


def _codes(values: pa.Array) -> Array:
    """Equal numbers for equal values; values that are missing are a group each."""
    codes: Array = values.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max(initial=0) + 1 + np.arange(len(alone))
    return codes


def _repeated(ids: pa.StringArray, given: Array) -> Array | None:
    """Rows of one id (views of one image) as groups within the source's splits, or ``None`` where no id repeats."""
    codes = _codes(ids)
    if codes.max(initial=-1) + 1 == len(codes):
        return None
    return codes * len(SPLITS) + given


def _repeated_ids(rows: Rows) -> list[CodedWarning]:
    """What repeated ids have that they should not."""
    codes = _codes(rows.ids)
    first = np.unique(codes, return_index=True)[1]
    found = []
    for values, code, what in (
        (rows.splits, "shared-ids", "ids in more than one split"),
        (rows.labels, "conflicts", "ids with more than one class"),
    ):
        several = np.unique(codes[values != values[first][codes]])
        if several.size:
            names = listed([rows.ids[int(first[one])].as_py() for one in several])
            found.append(CodedWarning(code, f"{what}: {names}"))
    return found


def _check_use(rows: Rows, chosen: Sequence[ColumnRoles]) -> None:
    where = f"{chosen[0].table.name}: {short(chosen[0].labels.name)}"
    trained, asked = np.unique(rows.labels[rows.splits == 0]), chosen[0].asked
    if len(trained) < 2:
        only = ", ".join(rows.class_names[label] for label in trained)
        other = f", or name other labels with {asked.origin.column('labels')}" if asked.labels is None else ""
        raise InputError(
            f"{where}: the training rows have one class only ({only}), expected at least 2; add another class{other}"
        )
    for code, split in enumerate(SPLITS):
        if not (rows.splits == code).any():
            reason = "".join(f" ({warning.message})" for warning in _no_labels(rows, chosen))
            raise InputError(
                f"{where}: no class has enough rows (or groups) to carve {split} out of train; add rows, or give "
                f"{asked.origin.split(split)}{reason}"
            )


def _no_labels(rows: Rows, chosen: Sequence[ColumnRoles]) -> list[CodedWarning]:
    """A warning of a column that nobody named and that may hold no labels: its values are nearly all different."""
    different = len(np.unique(rows.labels))
    asked = chosen[0].asked
    if asked.labels is not None or 2 * different < len(rows.labels):
        return []
    message = (
        f"the labels were read from {chosen[0].labels.name!r}, which has {different:,} different values in "
        f"{len(rows.labels):,} rows and may be no label; name another column with {asked.origin.column('labels')}"
    )
    return [CodedWarning("not-labels", message)]

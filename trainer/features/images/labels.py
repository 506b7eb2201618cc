"""From label columns of any kind to class names and indices, a million rows at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from ....core.builtin_types import to_builtin
from ....core.errors import InputError, near
from ....core.printable import shown

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Labels:
    """The labels of one table as they were found.

    Attributes:
        where: The file and column, for messages.
        values: ``(N,)``, of any dtype.
        class_names: Where the file itself says what they are indices into.
        place: From a row, and 0, to where its label stands in a file of text, and what is written there.
    """

    where: str
    values: Array
    class_names: list[str] | None = None
    place: Callable[[int, int], str] | None = None


def index_labels(found: Sequence[Labels], class_names: list[str] | None = None) -> tuple[list[str], Array]:
    """Class names, and the labels of all tables, one after the other, as indices into them, int64.

    Names that are given, or that the files say, are kept. Else the labels are sorted (numbers by value, text as text)
    and named after themselves: they may start at 1 or have gaps.

    Raises:
        InputError: A row without a label, a fraction, a label outside of the class names, two kinds of label, or a
            name that is not one line.
    """
    own = [labels for labels in found if labels.class_names is not None]
    if class_names is None and own:
        class_names = own[0].class_names
        for labels in found:
            if labels.class_names != class_names:
                raise InputError(
                    f"{labels.where}: its class names are not those of {own[0].where}; expected the same in all files, "
                    "so write them with one list of names"
                )
    cleaned = [_clean(labels) for labels in found]
    kinds = {values.dtype.kind for values in cleaned}
    if len(kinds) > 1:
        raise InputError(
            f"{found[-1].where}: some labels are numbers and some are text, expected one kind in all files"
        )
    if class_names is not None:
        check_names(class_names, found[0].where)
        pairs = zip(found, cleaned, strict=True)
        return class_names, np.concatenate([_known(labels, values, class_names) for labels, values in pairs])
    names, indices = _sorted(np.concatenate(cleaned))
    check_names(names, found[0].where)
    return names, indices


def check_names(names: Sequence[str], where: str) -> None:
    """Raise an `InputError` for a class name that is empty or has a line break: exported files list one a line."""
    for name in names:
        if name.splitlines() != [name] or not _is_text(name):
            raise InputError(f"{where}: class name {name!r} found, expected text on one line; rename that class")


def _clean(labels: Labels) -> Array:
    """Labels as int64 or as text (objects), every row with one."""
    values = labels.values
    if values.dtype.kind in "mM":
        _refuse(labels, np.ones(len(values), bool), "whole numbers or text, not times")
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values))
        _refuse(labels, ~whole, "a whole number or text")
    if values.dtype.kind in "iuf":
        _refuse(labels, values < 0, "0 or more")
        beyond = values.astype(np.float64) >= 2.0**63 if values.dtype.kind == "f" else values > np.iinfo(np.int64).max
        _refuse(labels, beyond, "below 2**63")
        return values.astype(np.int64)
    text = values.astype(object)
    if text.size and all(isinstance(value, Integral) and not isinstance(value, bool) for value in text):
        return _clean(replace(labels, values=np.array(text.tolist(), np.int64)))
    number = text.size > 0 and not isinstance(text[0], str | bool) and isinstance(text[0], Integral)
    fits = Integral if number else (str, bool)
    _refuse(labels, np.array([not isinstance(value, fits) for value in text], bool), "a whole number or text")
    texts = [str(value) for value in text]
    _refuse(labels, np.array([not one for one in texts], bool), "a whole number or text")
    if not _is_text("".join(texts)):
        _refuse(labels, np.array([not _is_text(one) for one in texts], bool), "text that UTF-8 can write")
    return np.array(texts, object)


def _is_text(text: str) -> bool:
    """Whether it has no half of a character (a lone surrogate), which no file of text can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(labels: Labels, wrong: Array, expected: str) -> None:
    rows = np.flatnonzero(wrong)
    if not rows.size:
        return
    value = to_builtin(labels.values[rows[0]])
    # NaN is no number; -1 in every row is how data sets of the hub say that a split has no labels
    nothing = value is None or value != value or value == "" or bool((labels.values == -1).all())
    if rows.size == len(wrong) > 1 and not nothing:
        kind = _kind(labels.values, value)
        raise InputError(
            f"{labels.where}: all {len(wrong):,} labels are {kind}, such as {shown(value)}, expected {expected}; write "
            "them as such, or name another column with --label-column"
        )
    more = f" ({rows.size} such rows of {len(wrong)})" if rows.size > 1 else ""
    todo = "label these rows or remove them" if nothing else "correct these labels or remove their rows"
    raise InputError(
        f"{_at(labels, int(rows[0]))}{more}, expected {expected}; {todo} (or the split, where it has no labels)"
    )


def _at(labels: Labels, row: int) -> str:
    """Where a label stands, and what is there."""
    if labels.place is not None:
        return f"{labels.place(row, 0)} found"
    value = to_builtin(labels.values[row])
    found = (
        "is missing (null)" if value is None else "is missing (null or NaN)" if value != value else f"is {shown(value)}"
    )
    return f"{labels.where} {found} in row {row}"


def _kind(labels: Array, value: Any) -> str:
    """What labels are that are none, in words."""
    if labels.dtype.kind in "mM":
        return f"of type {labels.dtype}"
    if isinstance(value, float):
        return "fractions"
    if isinstance(value, int):
        return "below 0" if value < 0 else "whole numbers"
    return f"of type {type(value).__name__}"


def _known(labels: Labels, values: Array, class_names: list[str]) -> Array:
    if values.dtype.kind == "O":
        index = {name: place for place, name in enumerate(class_names)}
        places = np.array([index.get(value, -1) for value in values], np.int64)
        if (unknown := np.flatnonzero(places < 0)).size:
            row = int(unknown[0])
            raise InputError(
                f"{_at(labels, row)}, expected one of the {len(class_names)} class names"
                f"{near(values[row], class_names)}; correct it, or add its name"
            )
        return places
    wrong = np.flatnonzero(values >= len(class_names))
    if wrong.size:
        low, high, last = values.min(), values.max(), len(class_names) - 1
        hint = " (do they count from 1?)" if low == 1 and high == len(class_names) else ""
        expected = f"expected 0 to {last} for {last + 1} class names"
        if labels.place is not None:
            found = f"{_at(labels, int(wrong[0]))}, {expected}, labels go from {low} to {high}{hint}; "
        else:
            found = f"{labels.where}: labels go from {low} to {high}{hint}, {expected}; the first wrong one is "
            found += f"{values[wrong[0]]} in row {wrong[0]}: "
        raise InputError(f"{found}correct the labels or the names")
    return values


def _sorted(values: Array) -> tuple[list[str], Array]:
    coded = pa.array(values).dictionary_encode()
    names = coded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return [str(names[index]) for index in order], place[coded.indices.to_numpy()]

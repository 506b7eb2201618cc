"""From a label column of any kind to class names and indices."""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets

from ...models.errors import InputError


def map_labels(
    columns: Mapping[str, Sequence[Any]], kind: Any, column: str, name: str
) -> tuple[list[str], dict[str, list[int]]]:
    """Class names, and every split's labels as indices into them.

    A `ClassLabel` says its names. Other labels, numbers or text, are sorted (numbers by value, so that 10 follows 9)
    and named after themselves: labels may start at 1 or have gaps.

    Args:
        columns: The labels by split.
        kind: The column's feature type.
        column: Its name.
        name: The data set, for messages.

    Raises:
        InputError: A missing label, one outside of the class names, or one that is neither number nor text.
    """
    if isinstance(kind, datasets.ClassLabel):
        class_names = list(kind.names)
        return class_names, {
            split: _in_range(labels, class_names, column, f"{name}: {split}") for split, labels in columns.items()
        }
    for split, labels in columns.items():
        _check_values(labels, column, f"{name}: {split}")
    values = sorted({label for labels in columns.values() for label in labels})
    index = {value: place for place, value in enumerate(values)}
    return [str(value) for value in values], {
        split: [index[label] for label in labels] for split, labels in columns.items()
    }


def _in_range(labels: Sequence[Any], class_names: list[str], column: str, where: str) -> list[int]:
    for row, label in enumerate(labels):
        if label is None or not 0 <= label < len(class_names):
            raise InputError(
                f"{where}: {column} is {label} in row {row}, expected 0 to {len(class_names) - 1} (an index into its "
                "class names); label these rows or remove them (or the split, where it has no labels)"
            )
    return list(labels)


def _check_values(labels: Sequence[Any], column: str, where: str) -> None:
    for row, label in enumerate(labels):
        if not isinstance(label, int | str):
            raise InputError(
                f"{where}: {column} is {label!r} in row {row}, expected a whole number or text; choose another "
                "--label-column or put one label in every row"
            )

"""Arrays and tensors in memory as tables."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import scipy.sparse
import torch

from ....core.errors import InputError
from ....core.printable import shown
from ..images.samples import split_called
from .builder import FeatureSetBuilder
from .column_roles import Names
from .origin import Origin
from .table import Array, Column, Table, array_of, check_different, check_filled, dtype_name, slices


def builder_of(columns: Mapping[str, Any], class_names: list[str] | None, **options: Any) -> FeatureSetBuilder:
    """A feature set in the making.

    Args:
        columns: ``features``, ``labels``, ``ids`` and ``groups``: each an array, or one a split, or ``None``.
        class_names: See `FeatureSet.from_arrays`.
        options: As for `FeatureSetBuilder`.

    Raises:
        InputError: Some are given by split and others are not, a split is not known, a matrix is sparse, or class names
            are empty or repeat.
    """
    if class_names is not None:
        check_different(class_names, "class_names")
    for name in ("features", "labels"):
        if columns[name] is None:
            raise InputError(f"{name}: None found, expected an array, or one for each split")
    given = {name: value for name, value in columns.items() if value is not None}
    ids, groups = ("ids" if "ids" in given else None), ("groups" if "groups" in given else None)
    asked = Names("features", "labels", ids, groups, Origin.ARRAYS)
    return FeatureSetBuilder(_tables(given), ["arrays"], asked, class_names=class_names, **options)


def _tables(given: Mapping[str, Any]) -> list[Table]:
    divided = {name: list(value) if isinstance(value, Mapping) else None for name, value in given.items()}
    first = divided["features"]
    for name, splits in divided.items():
        if splits != first:
            raise InputError(f"{name}: {splits or 'not by split'}, but features are {first or 'not by split'}")
    if first == []:
        raise InputError("features: an empty mapping found, expected an array, or one for each of train, val and test")
    if first is None:
        return [Table("arrays", "row", None, [_column(name, value) for name, value in given.items()])]
    unknown = [split for split in first if split_called(split) is None]
    if unknown:
        raise InputError(f"features: split {unknown[0]!r} is not known, expected train, val or test")
    return [
        Table(f"arrays: {split}", split, split_called(split), [_column(name, by[split]) for name, by in given.items()])
        for split in first
    ]


def _column(name: str, values: Any) -> Column:
    if scipy.sparse.issparse(values) or (isinstance(values, torch.Tensor) and values.layout != torch.strided):
        dense = "to_dense" if isinstance(values, torch.Tensor) else "toarray"
        raise InputError(f"{name}: a sparse matrix found, expected a dense one: pass its .{dense}()")
    if isinstance(values, torch.Tensor):
        check_filled(name, values)
        return Column(name, tuple(values.shape), str(values.dtype).removeprefix("torch."), partial(slices, values))
    if isinstance(values, str | bytes | os.PathLike):
        raise InputError(
            f"{name}: {shown(str(values))} found, expected an array or a list; import_features reads files"
        )
    array = array_of(name, values)
    if array.dtype == object and not array.ndim:
        raise InputError(f"{name}: {type(values).__name__} found, expected an array or a list")
    return Column(name, array.shape, _dtype(array), partial(slices, array))


def _dtype(array: Array) -> str:
    """The array's dtype; of Python objects with what the first of them is."""
    if array.dtype.kind == "O" and array.size:
        return f"object of {type(array.flat[0]).__name__}"
    return dtype_name(array.dtype)

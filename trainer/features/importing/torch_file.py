"""Dictionaries written by ``torch.save`` (``.p``, ``.pt``, ``.pth``), the paper's embeddings among them.

Nothing in them is run: only tensors and plain containers load. Tensors stay in the file until their rows are copied.
"""

import pickle
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ....core.errors import InputError
from .table import Array, Column, Table, by_split, dtype_name, slices

_ZIP = b"PK\x03\x04"
SAFE_WAY = (
    "where you trust it, write it again as tensors: "
    "torch.save({'features': torch.as_tensor(x), 'labels': torch.as_tensor(y)}, 'safe.pt'), or numpy.savez, or "
    "safetensors"
)


def read_torch(path: Path) -> list[Table]:
    """Open a file of tensors.

    The paper's dictionaries with ``val_*`` in place of ``test_*`` give a test split.

    Raises:
        InputError: It holds pickled objects (numpy arrays among them), is damaged, or holds no tensor.
    """
    loaded = _load(path)
    columns = [_column(name, value) for name, value in _flat(loaded) if _is_array(value)]
    if not columns:
        raise InputError(f"{path}: holds {type(loaded).__name__} without tensors, expected features and labels")
    tables = by_split(columns, str(path), path.name)
    if {table.split for table in tables} == {"train", "val"} and _is_the_papers(columns):
        return [_as_test(table, path) if table.split == "val" else table for table in tables]
    return tables


def _is_the_papers(columns: list[Column]) -> bool:
    return all(column.name.endswith(("_embeddings", "_labels")) for column in columns)


def _as_test(table: Table, path: Path) -> Table:
    keys = " and ".join(column.name for column in table.columns)
    note = (
        f"{path}: {keys} are the test split, as in the files of Petersen et al.; were they val, call them val_x, val_y"
    )
    return replace(table, split="test", note=note)


def _load(path: Path) -> Any:
    mapped = zipfile.is_zipfile(path)  # files of torch before 1.6 are no zip archives and cannot be mapped
    with path.open("rb") as file:
        begun = file.read(len(_ZIP)) == _ZIP
    if begun and not mapped:
        raise InputError(
            f"{path}: {path.stat().st_size:,} bytes, truncated or damaged (it lacks its end); get it again"
        )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected pickle protocol")  # the error says more
            return torch.load(path, map_location="cpu", mmap=mapped, weights_only=True)
    except pickle.UnpicklingError as error:
        if "Weights only load failed" not in str(error) and not mapped:
            raise InputError(f"{path}: is damaged or was not written by torch.save; {SAFE_WAY}") from None
        raise InputError(
            f"{path}: holds pickled objects other than tensors (numpy arrays count), which could run code; {SAFE_WAY}"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: damaged or not a file of torch.save ({reason}); get it again") from None


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested dictionaries, and of an outer list or tuple, by their path."""
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        items = [(str(place), item) for place, item in enumerate(value)]
    else:
        yield prefix or "tensor", value
        return
    for key, item in items:
        yield from _flat(item, f"{prefix}/{key}" if prefix else key)


def _is_array(value: Any) -> bool:
    """Tensors, and plain lists of numbers or text, as labels often are."""
    if isinstance(value, torch.Tensor):
        return value.dim() > 0 and value.layout == torch.strided
    return isinstance(value, list) and bool(value) and all(type(item) in (int, float, str, bool) for item in value)


def _column(name: str, value: Any) -> Column:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return Column(name, tuple(value.shape), dtype, partial(slices, value))
    array: Array = np.asarray(value)
    return Column(name, array.shape, dtype_name(array.dtype), partial(slices, array))

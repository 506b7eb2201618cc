"""Dictionaries written by ``torch.save`` (``.p``, ``.pt``, ``.pth``), the paper's embeddings among them.

Nothing in them is run: only tensors and plain containers load. Tensors stay in the file until their rows are copied.
"""

import pickle
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from ....core.archive import checked_archive, is_archive
from ....core.bounded_file import ToItsEnd
from ....core.errors import InputError
from ..size_limits import check_unpacked
from .table import Array, Column, Table, array_of, by_split, check_filled, dtype_name, slices

_MOST_LEAVES = 10_000
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
    try:
        leaves = list(islice(_flat(loaded), _MOST_LEAVES + 1))
    except RecursionError:
        raise InputError(f"{path}: its dictionaries lie too deep in each other, expected features and labels") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if len(leaves) > _MOST_LEAVES:
        raise InputError(f"{path}: more than {_MOST_LEAVES:,} tensors and values, expected features and labels")
    for name, value in leaves:
        _check_leaf(f"{path}: {name}", value)
    columns = [_column(name, value, path) for name, value in leaves if _is_array(value)]
    if not columns:
        raise InputError(f"{path}: holds {type(loaded).__name__} without tensors, expected features and labels")
    for _, value in leaves:
        if isinstance(value, torch.Tensor):
            check_unpacked(str(path), value.numel() * value.element_size(), path.stat().st_size)
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
    mapped = is_archive(path)  # files of torch before 1.6 are no zip archives and cannot be mapped
    if mapped:
        checked_archive(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the errors say more
            if mapped:
                return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
            with ToItsEnd(path) as file:
                return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "Weights only load failed" not in str(error) and not mapped:
            raise InputError(f"{path}: is damaged or was not written by torch.save; {SAFE_WAY}") from None
        raise InputError(
            f"{path}: holds pickled objects other than tensors (numpy arrays count), which could run code; {SAFE_WAY}"
        ) from None
    except RuntimeError as error:
        if "TorchScript" in str(error):
            raise InputError(f"{path}: is a TorchScript module, expected a dictionary of tensors; {SAFE_WAY}") from None
        raise InputError(f"{path}: damaged or not a file of torch.save ({_first_line(error)}); get it again") from None
    except Exception as error:  # noqa: BLE001 - of a damaged pickle torch raises whatever its instructions meet
        raise InputError(f"{path}: damaged or not a file of torch.save ({_first_line(error)}); get it again") from None


def _first_line(error: Exception) -> str:
    said = str(error).splitlines()[:1]
    return said[0] if said and isinstance(error, RuntimeError | ValueError) else " ".join([type(error).__name__, *said])


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested dictionaries, and of an outer list or tuple, by their path.

    Of a list with a dictionary for every sample the values of each key are put together.
    """
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        items = [(str(place), item) for place, item in enumerate(value)]
    elif isinstance(value, list | tuple) and value and all(isinstance(item, dict) for item in value):
        items = list(_put_together(value, prefix).items())
    else:
        yield prefix or "tensor", value
        return
    for key, item in items:
        yield from _flat(item, f"{prefix}/{key}" if prefix else key)


def _put_together(samples: Sequence[dict[Any, Any]], prefix: str) -> dict[str, Any]:
    """From a dictionary for every sample to a dictionary of columns."""
    where, keys = prefix or "the list", list(samples[0])
    for row, sample in enumerate(samples):
        if list(sample) != keys:
            raise InputError(f"{where}: keys {list(sample)[:10]} in row {row}, expected {keys[:10]} as in row 0")
    found: dict[str, Any] = {}
    for key in keys:
        values = [sample[key] for sample in samples]
        if isinstance(values[0], torch.Tensor):
            first = values[0]
            other = [row for row, one in enumerate(values) if getattr(one, "shape", None) != first.shape]
            if other:
                shape = tuple(first.shape)
                raise InputError(f"{where}: {key} in row {other[0]} is no tensor of shape {shape} as in row 0")
            found[str(key)] = torch.stack(values)
        else:
            found[str(key)] = values
    return found


def _is_array(value: Any) -> bool:
    """Tensors, and plain lists of numbers or text, as labels often are."""
    if isinstance(value, torch.Tensor):
        return value.dim() > 0 and value.layout == torch.strided
    return isinstance(value, list) and bool(value) and all(type(item) in (int, float, str, bool) for item in value)


def _check_leaf(where: str, value: Any) -> None:
    """Raise an `InputError` for a tensor that holds no rows, or a list of values with None among them."""
    if isinstance(value, torch.Tensor):
        check_filled(where, value)
    elif isinstance(value, list) and None in value and _is_array([one for one in value if one is not None]):
        raise InputError(f"{where}: None in row {value.index(None)}, expected a value in every row; remove such rows")


def _column(name: str, value: Any, path: Path) -> Column:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return Column(name, tuple(value.shape), dtype, partial(slices, value))
    array: Array = array_of(f"{path}: {name}", value)
    return Column(name, array.shape, dtype_name(array.dtype), partial(slices, array))

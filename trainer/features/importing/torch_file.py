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
from typing import Any, NamedTuple

import torch

from ....core.archive import checked_archive, is_archive
from ....core.bounded_file import ToItsEnd
from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError
from ..size_limits import check_unpacked
from .table import Array, Column, Table, array_of, by_split, check_filled, dtype_name, slices

_MOST_LEAVES = 10_000
SAFE_WAY = (
    "where you trust it, write it again as tensors: "
    "torch.save({'features': torch.as_tensor(x), 'labels': torch.as_tensor(y)}, 'safe.pt'), or numpy.savez, or "
    "safetensors"
)


class _Unreadable(NamedTuple):
    """What stands for the values of samples that cannot be put together."""

    shape: tuple[int, ...]
    fault: str


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
        raise InputError(f"{path}: its dictionaries are nested too deeply, expected features and labels") from None
    if len(leaves) > _MOST_LEAVES:
        raise InputError(f"{path}: more than {_MOST_LEAVES:,} tensors and values, expected features and labels")
    columns = [column for name, value in leaves if (column := _column(name, value)) is not None]
    if not columns:
        raise InputError(f"{path}: holds {type(loaded).__name__} without tensors, expected features and labels")
    unreadable = {column.name for column in columns if column.fault}
    for name, value in leaves:
        if isinstance(value, torch.Tensor) and name not in unreadable:
            check_unpacked(str(path), value.numel() * value.element_size(), path.stat().st_size)
    tables = by_split(columns, str(path), path.name)
    if {table.split for table in tables} == {"train", "val"} and _is_the_papers(columns):
        return [_as_test(table, path) if table.split == "val" else table for table in tables]
    return tables


def _is_the_papers(columns: list[Column]) -> bool:
    return all(column.name.endswith(("_embeddings", "_labels")) for column in columns)


def _as_test(table: Table, path: Path) -> Table:
    keys = " and ".join(column.name for column in table.columns)
    message = (
        f"{path}: {keys} are the test split, as in the files of Petersen et al.; were they val, call them val_x, val_y"
    )
    return replace(table, split="test", warning=CodedWarning("val-as-test", message))


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
        raise InputError(f"{path}: damaged or not a torch.save file ({_first_line(error)}); get it again") from None
    except Exception as error:  # noqa: BLE001 - of a damaged pickle torch raises whatever its instructions meet
        raise InputError(f"{path}: damaged or not a torch.save file ({_first_line(error)}); get it again") from None


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
        items = list(_put_together(value, prefix or "the list").items())
    else:
        yield prefix or "tensor", value
        return
    for key, item in items:
        yield from _flat(item, f"{prefix}/{key}" if prefix else key)


def _put_together(samples: Sequence[dict[Any, Any]], where: str) -> dict[str, Any]:
    """From a dictionary for every sample to a dictionary of columns, some of which cannot be read."""
    keys, found = list(samples[0]), dict[str, Any]()
    everywhere = set(keys).intersection(*samples)
    odd = next((row for row, sample in enumerate(samples) if sample.keys() != samples[0].keys()), 0)
    for key in dict.fromkeys(key for sample in samples for key in sample):
        if key not in everywhere:
            said = f"keys {list(samples[odd])[:10]} in row {odd}, expected {keys[:10]} as in row 0"
            found[str(key)] = _Unreadable((len(samples),), f"{where}: {said}")
            continue
        values = [sample[key] for sample in samples]
        kinds = [_shape(value) if isinstance(value, torch.Tensor) else None for value in values]
        other = next((row for row, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is not None:
            found[str(key)] = _Unreadable(
                (len(samples),), f"{where}: {key} in row {other} is {_unlike(kinds[0])} row 0"
            )
        else:
            found[str(key)] = values if kinds[0] is None else torch.stack(values)
    return found


def _unlike(shape: tuple[int, ...] | None) -> str:
    return "a tensor, other than in" if shape is None else f"no tensor of shape {shape} as in"


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return () if tensor.is_nested else tuple(tensor.shape)


def _column(name: str, value: Any) -> Column | None:
    """A tensor, or a plain list of numbers or text, as labels often are; nothing for other values."""
    if isinstance(value, _Unreadable):
        return Column.unreadable(name, value.shape, value.fault)
    if isinstance(value, torch.Tensor):
        return _of_tensor(name, value)
    given = [one for one in value if one is not None] if isinstance(value, list) else []
    return _of_list(name, value) if given and all(type(one) in (int, float, str, bool) for one in given) else None


def _of_tensor(name: str, tensor: torch.Tensor) -> Column | None:
    shape, dtype = _shape(tensor), str(tensor.dtype).removeprefix("torch.")
    try:
        check_filled(name, tensor)
    except InputError as error:
        return Column.unreadable(name, shape, str(error), dtype)
    return Column(name, shape, dtype, partial(slices, tensor)) if shape else None


def _of_list(name: str, values: list[Any]) -> Column:
    try:
        if None in values:
            row = values.index(None)
            raise InputError(f"{name}: None in row {row}, expected a value in every row; remove such rows")
        array: Array = array_of(name, values)
    except InputError as error:
        return Column.unreadable(name, (len(values),), str(error))
    return Column(name, array.shape, dtype_name(array.dtype), partial(slices, array))

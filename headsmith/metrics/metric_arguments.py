"""The arguments of the public formulas: what makes no sense is told by its name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.counted import counted
from ..core.errors import InputError
from ..core.printable import shown

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-6  # of a softmax in float32


def array_of(name: str, values: Any) -> Array:
    """An array, a list, or a tensor on the CPU as an array.

    Raises:
        InputError: No array can be made of it.
    """
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of several lengths; a tensor on a GPU, or with grad
        raise InputError(f"{name}: no array can be made of it ({error}); give a numpy array") from None


def truths(name: str, values: Any) -> Array:
    """Whether each row is right.

    Args:
        name: The argument, for errors.
        values: ``(N,)`` bool, or whole numbers that are 0 and 1 only; an array, a list, or a tensor on the CPU.

    Returns:
        ``(N,)`` bool.

    Raises:
        InputError: Something else.
    """
    found = array_of(name, values)
    if found.ndim != 1:
        raise InputError(f"{name}: shape {found.shape} found, expected (N,), True or False for each row")
    if found.dtype.kind != "b" and not (found.dtype.kind in "iu" and ((found == 0) | (found == 1)).all()):
        raise InputError(f"{name}: {found.dtype} found, expected bool, True or False for each row")
    return found.astype(bool, copy=False)


def same_rows(columns: Mapping[str, Array]) -> None:
    """Raise an `InputError` unless all of the columns, by name, have as many rows as the first."""
    first, *others = columns or [""]
    for name in others:
        if len(columns[name]) != len(columns[first]):
            raise InputError(
                f"{name}: {counted(len(columns[name]), 'row')} found, "
                f"expected {len(columns[first])}, the same rows as {first}"
            )


def numbers(name: str, values: Any) -> Array:
    """Numbers, NaN among them, ``(N,)``.

    Raises:
        InputError: Something else.
    """
    found = array_of(name, values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "fiu"):
        raise InputError(f"{name}: {found.dtype} of shape {found.shape} found, expected numbers of shape (N,)")
    return found


def shares(name: str, values: Any, *, unknown: bool = False) -> Array:
    """Numbers from 0 to 1, or above by rounding, ``(N,)``.

    Args:
        name: The argument, for errors.
        values: An array, a list, or a tensor on the CPU.
        unknown: Whether NaN may be among them, for a row that has none.

    Raises:
        InputError: Something else.
    """
    found = numbers(name, values)
    wrong = found[~((found >= 0) & (found <= 1 + _ROUNDING) | (unknown & np.isnan(found)))]
    if len(wrong):
        raise InputError(f"{name}: {wrong[0]} found, expected 0 to 1")
    return found.astype(np.float64) if found.dtype.kind != "f" else found


def whole(name: str, value: Any, least: int) -> int:
    """A whole number that is not below ``least``.

    Raises:
        InputError: Something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}: {shown(value)} found, expected a whole number, at least {least}")
    return int(value)

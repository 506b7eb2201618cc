"""Dataclasses with numpy arrays as JSON that any reader takes, and back."""

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import numpy as np

from .errors import DamagedFileError
from .files import read_json, write_json

if TYPE_CHECKING:
    import cattrs

T = TypeVar("T")


@cache
def _converter() -> "cattrs.Converter":
    import cattrs

    converter = cattrs.Converter()
    converter.register_unstructure_hook(float, lambda value: value if math.isfinite(value) else str(value))
    converter.register_unstructure_hook_func(_is_array, lambda array: converter.unstructure(array.tolist()))
    converter.register_structure_hook_func(_is_array, lambda values, _: _array(values))
    return converter


def to_json(value: Any) -> Any:
    """A dataclass as JSON values; what is not finite, which JSON does not know, as ``nan``, ``inf`` and ``-inf``."""
    return _converter().unstructure(value)


def write_record(path: Path, value: Any) -> None:
    """Write a dataclass as JSON."""
    write_json(path, to_json(value))


def read_record(path: Path, kind: type[T]) -> T:
    """Read what `write_record` wrote.

    Raises:
        InputError: No such file, or not what it should hold.
    """
    import cattrs

    values = read_json(path)
    try:
        return _converter().structure(values, kind)
    except cattrs.BaseValidationError as error:
        reason = "; ".join(cattrs.transform_error(error)[:2])
        raise DamagedFileError(f"{path}: no {kind.__name__} of this version ({reason}); evaluate again") from None


def _is_array(kind: Any) -> bool:
    return kind is np.ndarray or get_origin(kind) is np.ndarray


def _array(values: list[Any]) -> Any:
    array = np.asarray(values)
    return array.astype(np.float64) if array.dtype.kind in "US" else array

"""Numbers of other libraries as Python's own, which YAML, JSON and checkpoints hold."""

from numbers import Integral, Real
from typing import Any


def to_builtin(value: Any) -> Any:
    """A setting as Python's own number, truth value, text, or list of such.

    Args:
        value: Any value. Arrays and scalars of NumPy or torch (whatever has ``tolist``), ranges, lists and tuples are
            turned into what they hold; a truth value stays one, and what is none of these comes back as it is.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [to_builtin(one) for one in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def is_number(value: Any) -> bool:
    """Whether a plain value is a number, which a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)

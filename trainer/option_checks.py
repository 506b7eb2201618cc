"""Checks of options: one line that names the option, what was found and what was expected."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from ..core.errors import near
from ..core.printable import shown

Check = Callable[[str, Any], Any]

_LEAST, _MOST = 1e-30, 1e30
ABOVE_0 = f"above 0, from {_LEAST:g} to {_MOST:g}"


def choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return `value` when it is one of `choices`; raise ValueError with near names otherwise."""
    if isinstance(value, str) and value in choices:
        return value
    hint = near(value, choices) if isinstance(value, str) else ""
    raise ValueError(f"{name}: {shown(value)} found, expected one of {', '.join(choices)}{hint}")


def number(
    name: str,
    value: Any,
    expected: str,
    inside: Callable[[Any], bool] = lambda _: True,
    *,
    whole: bool = False,
    optional: bool = False,
) -> Any:
    """Return `value` as Python's int or float when it is a number, no bool, and `inside`; else raise ValueError.

    Args:
        name: the option's name in the message.
        value: what was given.
        expected: what the message says was expected.
        inside: whether a number is in range.
        whole: whether only whole numbers will do.
        optional: whether None will do too.
    """
    if value is None and optional:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real) or not inside(value):
        raise ValueError(f"{name}: {shown(value)} found, expected {expected}")
    python: Callable[[Any], Any] = int if whole else float
    return python(value)


def is_positive(value: Any) -> bool:
    """Whether a number is above zero, and its product with a score neither 0 nor infinite in float32."""
    return bool(_LEAST <= value <= _MOST)


def positive(name: str, value: Any, *, optional: bool = False) -> Any:
    """Return `value` when it is a number that `is_positive`; raise ValueError otherwise."""
    return number(name, value, f"a finite number {ABOVE_0}", is_positive, optional=optional)


def truth(name: str, value: Any) -> bool:
    """Return `value` when it is True or False; raise ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {shown(value)} found, expected True or False")
    return value

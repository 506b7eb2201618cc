"""Checks of options: one line that names the option, what was found and what was expected."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from ..core.errors import near
from ..core.printable import shown

Check = Callable[[str, Any], Any]


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
    """Return `value` when it is a number, not a bool, that is `inside`; raise ValueError otherwise.

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
    return value


def positive(name: str, value: Any, *, optional: bool = False) -> Any:
    """Return `value` when it is a finite number above zero; raise ValueError otherwise."""
    return number(name, value, "a finite number above 0", lambda x: 0 < x < float("inf"), optional=optional)


def truth(name: str, value: Any) -> bool:
    """Return `value` when it is True or False; raise ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {shown(value)} found, expected True or False")
    return value

"""What a sweep file may say of one setting: one value, or a list of them."""

import dataclasses
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ...core.builtin_types import to_builtin
from ...core.errors import InputError
from ...core.printable import shown
from ..settings_file import no_setting
from ..train_config import TrainConfig

HINTS = {field.name: get_type_hints(TrainConfig)[field.name] for field in dataclasses.fields(TrainConfig)}
MOST_HEADS = 100_000
_IN_WORDS = {
    NoneType: "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a word",
    tuple: "a list of numbers",
}


def values_of(name: str, given: Any, where: str, called: str | None = None) -> list[Any]:
    """The values that a sweep tries of a setting.

    A list is an axis of the grid. Where the setting itself is a list (``p_k``, ``select``), a list of numbers is one
    value, and a list with lists, words or null in it is an axis.

    Args:
        name: The setting.
        given: What the file says of it; from Python also an array or a range.
        where: The file, for messages.
        called: What the file calls it, where that is another name.

    Raises:
        InputError: No such setting, an empty list, or a value of the wrong type.
    """
    if name not in HINTS:
        raise InputError(f"{where}: {no_setting(name, HINTS)}")
    if isinstance(given, range):
        given = given[: MOST_HEADS + 1]
    given = to_builtin(given)
    if isinstance(given, list) and len(given) > MOST_HEADS:
        raise InputError(f"{where}: {called or name}: more than {MOST_HEADS:,} values found, the most heads of a sweep")
    if given == []:
        raise InputError(
            f"{where}: {called or name}: an empty list found, so there is nothing to train; give one or more"
        )
    if _is_axis(name, given):
        return [_value(name, one, where, called or name) for one in given]
    return [_value(name, given, where, called or name)]


def _is_axis(name: str, given: Any) -> bool:
    if not isinstance(given, list):
        return False
    return tuple not in _kinds(name) or any(isinstance(one, list | str | NoneType) for one in given)


def _kinds(name: str) -> list[Any]:
    """The types that a setting takes, ``tuple`` for a list of numbers."""
    hint = HINTS[name]
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return [get_origin(part) or part for part in parts]


def _value(name: str, given: Any, where: str, called: str) -> Any:
    kinds = _kinds(name)
    value = _number(given) if {int, float} & {*kinds} and isinstance(given, str) else given
    if not any(_fits(value, kind) for kind in kinds):
        expected = " or ".join(_IN_WORDS[kind] for kind in kinds)
        raise InputError(f"{where}: {called}: {shown(given)} found, expected {expected}, or a list of such")
    return value


def _number(text: str) -> Any:
    """YAML takes 1e-3 for a word, since it has no dot; everybody means the number."""
    try:
        return float(text)
    except ValueError:
        return text


def _fits(value: Any, kind: Any) -> bool:
    if kind is tuple:
        return isinstance(value, list) and len(value) > 0 and all(_fits(one, float) for one in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)

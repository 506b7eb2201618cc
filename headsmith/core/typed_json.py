"""JSON values as typed records: what is missing, unknown or of another kind is told with its field."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from .errors import DamagedFileError, near
from .printable import printable

T = TypeVar("T")
NOT_FINITE = ("nan", "inf", "-inf")
LONGEST = 40
_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "null",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}


class _Wrong(Exception):  # noqa: N818 - never leaves this file
    """What is wrong with a field, with its name."""


def structured(values: Any, kind: type[T], where: str, *, advice: str) -> T:
    """JSON values as a record; nothing is converted, so that a text is never taken for a number.

    Kinds are dataclasses, which hold all of their fields and no others; typed dictionaries, which may hold more;
    lists, tuples, dictionaries with keys of text or whole numbers, ``Literal`` and unions of these; ``bool``, ``int``
    (64 bits), ``float`` (``"nan"``, ``"inf"`` and ``"-inf"`` among them), ``str`` and ``Any``; and numpy
    arrays of one axis, of the dtype that their annotation names. A ``ValueError`` of a dataclass' own
    ``__post_init__`` is told as the others.

    Args:
        values: What JSON holds.
        kind: What it should be.
        where: The file, for errors.
        advice: What to do about it, for errors.

    Raises:
        DamagedFileError: ``FILE: FIELD: found, expected; ADVICE``.
    """
    try:
        found: T = _read(values, kind, "")
    except _Wrong as error:
        raise DamagedFileError(f"{where}: {error}; {advice}") from None
    return found


def check_lengths(columns: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless all columns of a record have as many entries as the first one."""
    first, *others = columns
    for name in others:
        if len(columns[name]) != len(columns[first]):
            raise ValueError(f"{name}: found {len(columns[name])} entries, expected {len(columns[first])} as {first}")


def _read(value: Any, kind: Any, field: str) -> Any:
    """A value as a kind; ``field`` is its name in the file."""
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        return _one_of(value, get_args(kind), field)
    if origin is Literal:
        if not any(value == one and type(value) is type(one) for one in get_args(kind)):
            raise _wrong(field, value, f"one of {', '.join(map(str, get_args(kind)))}")
        return value
    if is_dataclass(origin) or is_typeddict(origin):
        return _record(value, origin, field)
    return _READERS.get(origin, _anything)(value, get_args(kind), field)


def _anything(value: Any, _: tuple[Any, ...], __: str) -> Any:
    return value


def _one_of(value: Any, kinds: tuple[Any, ...], field: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    alike = [kind for kind in kinds if _is_nested(kind, value)]  # whose own message names the place inside
    if len(kinds) == 1 or len(alike) == 1:
        return _read(value, [*alike, *kinds][0], field)
    for kind in kinds:
        try:
            return _read(value, kind, field)
        except _Wrong:
            continue
    raise _wrong(field, value, " or ".join(_name(kind) for kind in kinds))


def _is_nested(kind: Any, value: Any) -> bool:
    """Whether a list or an object is asked for, and there is one."""
    origin = get_origin(kind) or kind
    if isinstance(value, dict):
        return origin is dict or is_dataclass(origin) or is_typeddict(origin)
    return isinstance(value, list) and origin in (list, tuple, np.ndarray)


def _record(value: Any, kind: Any, field: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(field, value, "an object")
    known, required = _fields(kind)
    lacking = next((name for name in required if name not in value), None)
    if lacking is not None:
        raise _Wrong(f"{_inside(field, lacking)}: missing, expected {_name(known[lacking])}")
    strange = next((name for name in value if name not in known), None)
    if strange is not None and not is_typeddict(kind):
        raise _Wrong(f"{_inside(field, strange)}: is no field of this version{near(strange, known)}")
    found = {name: _read(value[name], known[name], _inside(field, name)) for name in known if name in value}
    if is_typeddict(kind):
        return value | found
    try:
        return kind(**found)
    except ValueError as error:
        raise _Wrong(f"{field}: {error}" if field else str(error)) from None


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The kind of each field, and which must be there."""
    hints = get_type_hints(kind)
    if is_typeddict(kind):
        return hints, tuple(name for name in hints if name in kind.__required_keys__)
    own = [field for field in fields(kind) if field.init]
    required = [field.name for field in own if field.default is MISSING and field.default_factory is MISSING]
    return {field.name: hints[field.name] for field in own}, tuple(required)


def _list(value: Any, kinds: tuple[Any, ...], field: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(field, value, "a list")
    return [_read(one, kinds[0], f"{field}[{place}]") for place, one in enumerate(value)] if kinds else value


def _tuple(value: Any, kinds: tuple[Any, ...], field: str) -> tuple[Any, ...]:
    if not kinds or kinds[-1] is ...:
        return tuple(_list(value, kinds[:1], field))
    if not isinstance(value, list) or len(value) != len(kinds):
        raise _wrong(field, value, f"a list of {len(kinds)}")
    return tuple(
        _read(one, kind, f"{field}[{place}]") for place, (one, kind) in enumerate(zip(value, kinds, strict=True))
    )


def _dict(value: Any, kinds: tuple[Any, ...], field: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _wrong(field, value, "an object")
    key, one = kinds or (str, Any)
    return {_key(name, key, field): _read(entry, one, _inside(field, name)) for name, entry in value.items()}


def _key(name: str, kind: Any, field: str) -> Any:
    """A key of an object, which JSON writes as text."""
    if kind is not int:
        return _text(name, (), field)
    if not (name.isascii() and name.isdecimal() and len(name) < len(str(2**63))):
        raise _wrong(_inside(field, name), name, "a whole number as the name of the field")
    return int(name)


def _array(value: Any, kinds: tuple[Any, ...], field: str) -> np.ndarray[Any, Any]:
    if not isinstance(value, list):
        raise _wrong(field, value, "a list of numbers")
    dtype = next((get_args(kind)[0] for kind in kinds[1:] if get_args(kind)), None)
    whole = dtype is not None and np.issubdtype(dtype, np.integer)
    read = _whole if whole or (dtype is None and all(type(one) is int for one in value)) else _number
    return np.array([read(one, (), f"{field}[{place}]") for place, one in enumerate(value)], dtype)


def _whole(value: Any, _: tuple[Any, ...], field: str) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _wrong(field, value, "a whole number" if type(value) is not int else "a whole number of 64 bits")
    return value


def _number(value: Any, _: tuple[Any, ...], field: str) -> float:
    if type(value) not in (int, float) and value not in NOT_FINITE:
        raise _wrong(field, value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise _wrong(field, value, "a number of 64 bits") from None


def _text(value: Any, _: tuple[Any, ...], field: str) -> str:
    if not isinstance(value, str):
        raise _wrong(field, value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(field, value, "Unicode text without lone surrogates") from None
    return value


def _flag(value: Any, _: tuple[Any, ...], field: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(field, value, "true or false")
    return value


_READERS: dict[Any, Callable[[Any, tuple[Any, ...], str], Any]] = {
    bool: _flag,
    int: _whole,
    float: _number,
    str: _text,
    list: _list,
    tuple: _tuple,
    dict: _dict,
    np.ndarray: _array,
}


def _inside(field: str, name: str) -> str:
    short = printable(name if len(name) <= LONGEST else name[: LONGEST - 1] + "…")
    return f"{field}.{short}" if field else short


def _wrong(field: str, value: Any, expected: str) -> _Wrong:
    return _Wrong(f"{field}: found {_shown(value)}, expected {expected}" if field else f"expected {expected}")


def _shown(value: Any) -> str:
    """A value of a file, short, on one line."""
    if isinstance(value, bool | NoneType | list | dict):
        return _NAMES[type(value)] if not isinstance(value, bool) else str(value).lower()
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"
    return printable(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _name(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        return " or ".join(_name(one) for one in get_args(kind))
    return (
        "a list of numbers"
        if origin is np.ndarray
        else _NAMES.get(origin, "an object" if origin is not Any else "a value")
    )

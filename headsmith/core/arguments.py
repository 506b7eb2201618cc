"""The arguments of public functions: what is misspelt, or of another type, is told by its keyword."""

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from .errors import InputError, near
from .printable import short, shown

P = ParamSpec("P")
R = TypeVar("R")
_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    NoneType: "None",
}


class ArgumentError(InputError, TypeError):
    """A keyword that a function has not, or an argument of another type than it takes."""


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse keywords that it has not with the names near them, and what is to be given by keyword.

    It may be called in a loop.
    """
    known = _keywords(function)
    parameters = inspect.signature(function).parameters.values()
    by_keyword = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    by_place = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    most = math.inf if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(by_place)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                own = function.__name__ == "__init__" and args  # or that of the class which it was inherited from
                raise no_keyword(name, type(args[0]).__name__ if own else _called(function), known)
        if len(args) > most and by_keyword:
            places = ", ".join(name for name in by_place if name not in ("self", "cls")) or "none"
            raise ArgumentError(
                f"{_called(function)}: too many positional arguments, expected {places}; "
                f"give the others, such as {by_keyword[0]}, by keyword"
            )
        return function(*args, **kwargs)

    return checked


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse misspelt keywords, and arguments that are not of the types of its annotations.

    Looked at are paths, text, numbers, truth values, lists and mappings of such, and classes; arrays and whatever else
    an annotation names are left to the function. A path is not empty.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{_called(function)}: {error}") from None
        for name, value in given.items():
            hint = signature.parameters[name].annotation
            kind = signature.parameters[name].kind
            if kind is not inspect.Parameter.VAR_KEYWORD and not _fits(value, hint):
                raise ArgumentError(f"{name}: {shown(value)} found, expected {_expected(hint)}", keyword=name)
        return function(*args, **kwargs)

    return named(checked)


def no_keyword(name: str, function: str, known: Iterable[str]) -> ArgumentError:
    """The error about a keyword that a function has not."""
    hint = near(name, known) or f"; expected some of {', '.join(known)}"
    return ArgumentError(f"{short(name)}: no keyword of {function}{hint}")


def _called(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


def _keywords(function: Callable[..., Any]) -> dict[str, None]:
    """The names by which arguments may be given, those of ``**settings: Annotated[Any, TrainConfig]`` among them."""
    found: dict[str, None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name not in ("self", "cls"):
            found[name] = None
        for kind in get_args(parameter.annotation):
            if parameter.kind is inspect.Parameter.VAR_KEYWORD and is_dataclass(kind):
                found |= dict.fromkeys(field.name for field in fields(kind))
    return found


def _fits(value: Any, hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        choices = get_args(hint)
        empty = isinstance(value, str) and not value.strip() and Path in choices
        return not empty and any(_fits(value, one) for one in choices)
    if kind in (None, NoneType):
        return value is None
    if kind is Path:
        return isinstance(value, os.PathLike)
    if kind in (bool, int, float):
        return _is_number(value, kind)
    if not isinstance(kind, type) or kind is inspect.Parameter.empty or getattr(kind, "_is_protocol", False):
        return True
    if kind in (Mapping, str) or not issubclass(kind, Iterable) or not get_args(hint):
        return isinstance(value, kind)
    one = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    return not one and (not isinstance(value, list | tuple) or all(_fits(item, get_args(hint)[0]) for item in value))


def _is_number(value: Any, kind: type) -> bool:
    """Whether it is one of Python's own or of another library's, such as numpy's; a truth value is none."""
    truth = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    return truth if kind is bool else not truth and isinstance(value, Integral if kind is int else Real)


def _expected(hint: Any) -> str:
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = [_words(one) for one in choices if one is not str or Path not in choices]
    return " or ".join(dict.fromkeys(words))


def _words(hint: Any) -> str:
    kind = get_origin(hint) or hint
    if kind in _WORDS or kind is None:
        return _WORDS[kind or NoneType]
    if kind is Mapping:
        return "a mapping"
    if get_args(hint) and issubclass(kind, Iterable):
        return f"a list of {_expected(get_args(hint)[0]).removeprefix('a ')}s"
    return f"a {kind.__name__}"

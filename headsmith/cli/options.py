"""Commands whose options are the fields of a dataclass of settings."""

import dataclasses
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from ..core.errors import InputError


def options_of(
    settings: type, *, only: tuple[str, ...] = (), left_out: bool = False, last: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as options, in the place of its ``**options``.

    Args:
        settings: The dataclass, whose fields `headsmith.core.settings.setting` made.
        only: Some of the fields; all where none is named.
        left_out: What is not given is not passed on: a file of settings, and then the dataclass, decide it.
        last: Parameters of the command itself that follow the fields in its help.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            one.replace(kind=one.KEYWORD_ONLY)
            for one in inspect.signature(command).parameters.values()
            if one.kind is not one.VAR_KEYWORD
        ]
        fields = [
            _parameter(field, left_out) for field in dataclasses.fields(settings) if not only or field.name in only
        ]
        parameters = [one for one in own if one.name not in last] + fields + [one for one in own if one.name in last]

        names = {field.name for field in fields}

        def called(**given: Any) -> None:
            said = {name: _plain(value) for name, value in given.items() if value is not None or name not in names}
            command(**(said if left_out else given | said))

        called.__name__, called.__doc__, called.__module__ = command.__name__, command.__doc__, command.__module__
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        setattr(called, "__signature__", inspect.Signature(parameters))  # noqa: B010 - functions have no such attribute
        return called

    return decorate


def _parameter(field: "dataclasses.Field[Any]", left_out: bool) -> inspect.Parameter:
    default: Any = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    if isinstance(default, tuple) and "parser" not in field.metadata:
        default = list(default)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if left_out else default,
        annotation=_annotation(field, left_out),
    )


def _annotation(field: "dataclasses.Field[Any]", left_out: bool = False) -> Any:
    about = field.metadata
    flag = about.get("flag", f"--{field.name.replace('_', '-')}")
    names = [flag] if field.type is not bool or not left_out else [f"{flag}/--no-{flag[2:]}"]
    in_words = about["left_out"] or (_in_words(field.default) if left_out else None)
    said: dict[str, Any] = {} if in_words is None else {"show_default": in_words}
    if "parser" in about:
        said |= {"parser": _parser(about["parser"]), "metavar": about["metavar"]}
    return Annotated[_kind(field, left_out), typer.Option(*names, help=about["text"], **said)]


def _in_words(default: Any) -> str | None:
    """A default that is not passed on; nothing where it is nothing."""
    if default is None:
        return None
    return ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _parser(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A parser whose errors Typer tells with the name of the option."""

    def parsed(text: Any) -> Any:
        try:
            return parse(text)
        except InputError as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


def _kind(field: "dataclasses.Field[Any]", left_out: bool) -> Any:
    """What Typer takes for the type of a field: text where it could be text, else its own."""
    about = field.metadata
    if "parser" in about:
        return Any
    values = (*about["values"], *about.get("command_line", ()))
    one: Any = StrEnum(field.name.title(), [(value, value) for value in values]) if values else _scalar(field.type)
    if isinstance(field.default, tuple):
        return list[one]
    return one | None if left_out or field.default is None else one


def _scalar(kind: Any) -> Any:
    choices = [one for one in get_args(kind) or (kind,) if one not in (NoneType, Ellipsis)]
    return choices[0] if len(choices) == 1 and choices[0] in (bool, int, float, str, Path) else str


def _plain(value: Any) -> Any:
    """A choice as text, and several as a list of it."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.value if isinstance(value, StrEnum) else value

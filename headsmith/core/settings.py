"""Settings as the fields of a frozen dataclass: default, help, choices and bounds are told once, where the field is."""

import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from .errors import InputError, near
from .printable import shown

# What files hold of whole numbers: 64 bits.
MOST = 2**63
C = TypeVar("C", bound=type)
T = TypeVar("T")


class Bound(NamedTuple):
    """What a value must be.

    Attributes:
        kind: Its type, or several.
        fits: Whether a value of that type will do.
        expected: The same in words.
    """

    kind: Any
    fits: Callable[[Any], bool]
    expected: str


def setting(
    default: Any,
    text: str,
    *,
    values: Sequence[str] = (),
    bounds: Sequence[Bound] = (),
    left_out: str | None = None,
    **shape: Any,
) -> Any:
    """A field of a dataclass of settings.

    Args:
        default: Its default.
        text: What the command line and the docstrings say of it.
        values: What it may be; nothing where it is no choice.
        bounds: What it must be, unless it is ``None`` by default.
        left_out: The default in words, where that says more.
        **shape: How the command line takes it, where that does not follow from its type: ``flag``, ``parser`` with
            ``metavar``, and ``command_line`` with what may be given there beside ``values``.
    """
    about = {"text": text, "values": tuple(values), "bounds": tuple(bounds), "left_out": left_out}
    return dataclasses.field(default=default, metadata=about | shape)


def check_choices(settings: Any) -> None:
    """Refuse values that are none of the choices of their fields, or not within their bounds.

    Args:
        settings: A dataclass whose fields `setting` made.

    Raises:
        InputError: Such a value, with the names near it.
    """
    for field in dataclasses.fields(settings):
        value, values = getattr(settings, field.name), field.metadata["values"]
        flag = field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
        if value is None and field.default is None:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            if values and (not isinstance(one, str) or one not in values):
                known = ", ".join(values)
                raise InputError(f"{flag}: {shown(one)} found, expected one of {known}{near(str(one), values)}")
        for kind, fits, expected in field.metadata["bounds"]:
            right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            if not right or not fits(value):
                raise InputError(f"{flag}: {shown(value)} found, expected {expected}")
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, int) and not -MOST <= one < MOST:
                raise InputError(f"{flag}: {shown(one)} found, expected a number that 64 bits hold")


def of_keywords(settings: type[T], keywords: Mapping[str, Any]) -> T:
    """The settings of a function that takes each of them as a keyword of the same name.

    Args:
        settings: The dataclass.
        keywords: The function's arguments, ``locals()`` at its start, others than settings among them.
    """
    return settings(**{field.name: keywords[field.name] for field in dataclasses.fields(cast(Any, settings))})


def documented(heading: str, settings: type | None = None, *, without: Sequence[str] = ()) -> Callable[[C], C]:
    """Add to the docstring of a class what is said of each setting, under a header such as ``Attributes``.

    Args:
        heading: The heading.
        settings: The dataclass of the settings; by default the class itself.
        without: Fields that are left out.
    """

    def add(owner: C) -> C:
        lines = [f"{heading}:", *_lines(settings or owner, without)]
        text = inspect.cleandoc(owner.__doc__ or "")
        owner.__doc__ = f"{text}\n\n" + "\n".join(lines) + "\n"
        return owner

    return add


def _lines(settings: type, without: Sequence[str]) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        if field.name in without:
            continue
        known = ", ".join(field.metadata["values"])
        said = f"{field.name}: {field.metadata['text']}" + f" One of {known}." * bool(known)
        yield from textwrap.wrap(said, 116, initial_indent="    ", subsequent_indent="        ")


def with_settings(
    settings: type, *, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a function take the fields of a dataclass as keywords with their defaults, in the place of ``**settings``.

    Args:
        settings: The dataclass.
        without: Fields that it does not take.
    """
    fields = [field for field in dataclasses.fields(settings) if field.name not in without]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
        more = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields
        ]

        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> None:
            function(*args, **{field.name: field.default for field in fields} | given)

        setattr(called, "__signature__", inspect.Signature([*own, *more]))  # noqa: B010 - functions have no such attribute
        return called

    return decorate

"""Spells the options of a loss out in the signatures and docstrings of the functions that take them."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from ..loss_options import LossOptions

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_LINE = "        **options: see `LossOptions`."


def with_options(without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Spell out `**options` in the signature of a public function, and in its docstring where `_LINE` stands.

    Args:
        without: options that the function does not take.
    """

    def spelt(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for one in fields(LossOptions)
            if one.name not in (*signature.parameters, *without)
        ]
        function.__signature__ = signature.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
        return with_option_lines(function, without)

    return spelt


def with_option_lines(documented: T, without: tuple[str, ...] = ()) -> T:
    """Put a line for each option where `_LINE` stands in the docstring of a function or class."""
    lines = [
        textwrap.fill(f"{one.name}: {one.metadata['text']}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for one in fields(LossOptions)
        if one.name not in without
    ]
    documented.__doc__ = (documented.__doc__ or "").replace(_LINE, "\n".join(lines))
    return documented

"""The words of the Python functions, keywords, in those of the command line, flags."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_Flags = Callable[[], Mapping[str, str]]
_NONE: _Flags = dict
_FLAGS: ContextVar[_Flags] = ContextVar("flags", default=_NONE)


@contextmanager
def flags_of(group: Any, ctx: Any) -> Iterator[None]:
    """Say what the block tells in the flags of the command that runs; of another's flag, whose it is is said too."""

    def flags() -> Mapping[str, str]:
        others: dict[str, tuple[str, list[str]]] = {}
        for name in group.list_commands(ctx):
            for keyword, flag in _flags_of(group.get_command(ctx, name)).items():
                if flag:
                    others.setdefault(keyword, (flag, []))[1].append(name)
        owned = {keyword: f"{flag} (an option of {_listed(names)})" for keyword, (flag, names) in others.items()}
        return owned | _flags_of(group.get_command(ctx, ctx.invoked_subcommand or ""))

    token = _FLAGS.set(flags)
    try:
        yield
    finally:
        _FLAGS.reset(token)


def _flags_of(command: Any) -> dict[str, str]:
    """The flag of each keyword of a command; empty where that is an argument."""
    return {
        param.name: next((name for name in param.opts if name.startswith("--")), "")
        for param in getattr(command, "params", ())
    }


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]


def with_flags(line: str, *, keyword: str | None = None) -> str:
    """A text of the Python functions with flags in the place of keywords in backticks (```overwrite```).

    Args:
        line: The text.
        keyword: The keyword that it begins with, as errors do (``p_k: ...``).
    """
    flags, told = _FLAGS.get()(), set[str]()

    def said(name: str) -> str:
        text = flags.get(name, "")
        text = text.partition(" ")[0] if name in told else text
        told.add(name)
        return text

    def flag(found: re.Match[str]) -> str:
        return said(found["name"]) or found[0]

    if keyword is not None and flags.get(keyword):
        line = f"{said(keyword)}{line.removeprefix(keyword)}"
    return re.sub(r"`(?P<name>[a-z_]\w*)`", flag, line)

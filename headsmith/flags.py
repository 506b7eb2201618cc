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
    """Say what the block tells in the flags of the commands of ``group``; those of the command that runs win."""

    def flags() -> Mapping[str, str]:
        names = [*group.list_commands(ctx), ctx.invoked_subcommand or ""]
        commands = [group.get_command(ctx, name) for name in names]
        return {
            param.name: next((name for name in param.opts if name.startswith("--")), "")
            for command in commands
            for param in getattr(command, "params", ())
        }

    token = _FLAGS.set(flags)
    try:
        yield
    finally:
        _FLAGS.reset(token)


def with_flags(line: str, *, keyword: str | None = None) -> str:
    """A text of the Python functions with flags in the place of keywords in backticks (```overwrite```).

    Args:
        line: The text.
        keyword: The keyword that it begins with, as errors do (``p_k: ...``).
    """
    flags = _FLAGS.get()()

    def flag(found: re.Match[str]) -> str:
        return flags.get(found["name"]) or found[0]

    if keyword is not None and flags.get(keyword):
        line = f"{flags[keyword]}{line.removeprefix(keyword)}"
    return re.sub(r"`(?P<name>[a-z_]\w*)`", flag, line)

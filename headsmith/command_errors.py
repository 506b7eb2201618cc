"""How the command line ends: a user's mistake is one line and a status, never a traceback."""

import re
import traceback
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from .core.errors import HeadsmithError, near
from .core.full_disk import full_disk_message, is_full_disk
from .core.printable import printable
from .core.signals import EndedError, endable
from .core.terminal import Terminal, first_process
from .keywords_as_flags import flags_of, with_flags

# What is said of values that are not what an option takes, by pydantic's name of the error.
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
}
# Options that went, and what says the same now.
_NOW = {
    "--fp16": "--precision fp16",
    "--int8": "--precision int8",
    "--int8-dynamic": "--precision int8-dynamic",
    "--max-top1-drop": "--max-drop",
    "--max-top5-drop": "--max-drop",
    "--weak-gate": "a higher --max-drop",
    "--features-column": "--feature-column",
    "--labels-column": "--label-column",
}
_CHOICES = re.compile(r"(?P<value>'[^']*') is not one of (?P<choices>.*)")
INPUT_ERROR, INTERRUPTED = 2, 130
# Where a context keeps the names of the parameters that are given.
GIVEN = "headsmith.given"
_NOTHING_KEPT = "nothing is kept, and nothing half written was left"


class Command(TyperCommand):
    """A sub-command; an option that is given twice, of which the last one would win without a word, is refused."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options, then read them; those that end the command at once may look which others are given."""
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for param, times in Counter[Any](given).items():
            if times > 1 and param.param_type_name == "option" and not getattr(param, "multiple", False):
                several = ", with commas between its values" * ("," in (param.metavar or ""))
                raise typer.BadParameter(f"given {times} times, expected once{several}", ctx=ctx, param=param)
        ctx.meta[GIVEN] = {param.name for param in given}
        return super().parse_args(ctx, args)


class SeveralCommand(Command):
    """A sub-command whose options of several values take all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further word, as the parser knows it."""
        several = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        found: list[str] = []
        option = ""
        for arg, following in pairwise([*args, "--"]):
            if arg in several:
                option = arg
                found += [arg] * following.startswith("--")  # without a value, which is told
            elif arg.startswith("--") or not option:
                option = ""
                found.append(arg)
            else:
                found += [option, arg]
        return super().parse_args(ctx, found)


class Commands(TyperGroup):
    """The sub-commands; an expected error becomes an exit code, and ``--debug`` shows its traceback as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the sub-command; without any argument, show the help."""
        if not args:
            return super().parse_args(ctx, args)
        if (empty := _without_value(args)) is not None:
            _say(f"{empty}: '' found, expected a value")
            raise typer.Exit(INPUT_ERROR)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            raise _misused(error, ctx) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; a signal that asks for an end is heard, so that what is half written goes."""
        with flags_of(self, ctx):
            return self._invoked(ctx)

    def _invoked(self, ctx: Any) -> Any:
        try:
            with endable():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except TyperException as error:
            raise _misused(error, ctx) from None
        except KeyboardInterrupt as stop:
            _say(f"interrupted: {'; '.join(getattr(stop, '__notes__', [])) or _NOTHING_KEPT}")
            raise typer.Exit(stop.code if isinstance(stop, EndedError) else INTERRUPTED) from None
        except Exception as error:  # noqa: BLE001 - whatever was not foreseen is one line too, and --debug shows the rest
            if ctx.params.get("debug"):
                traceback.print_exc()
            _say(with_flags(_line(error), keyword=getattr(error, "keyword", None)))
            raise typer.Exit(_exit_code(error)) from None


def _without_value(args: list[str]) -> str | None:
    """What an empty text was given for, as a shell gives it where a variable is not set."""
    for before, arg in pairwise(["", *args]):
        if not arg.strip():
            return before if before.startswith("--") else "an argument"
        if re.fullmatch(r"--[a-z-]+=\s*", arg):
            return arg.partition("=")[0]
    return None


def _misused(error: Any, ctx: Any) -> typer.Exit:
    """Say what is wrong with the command line, and where its help is."""
    command = ctx.invoked_subcommand if ctx.invoked_subcommand in ctx.command.commands else ""
    path = error.ctx.command_path if getattr(error, "ctx", None) else f"{ctx.command_path} {command}".rstrip()
    _say(f"{_misuse(error).rstrip('.')}; see {path} --help")
    return typer.Exit(error.exit_code)


def _misuse(error: Any) -> str:
    """What is wrong; of a value that an option does not take in the words of every other error."""
    message = " ".join(str(error.format_message()).split())
    if now := _NOW.get(getattr(error, "option_name", "")):
        return f"{error.option_name} is now {now}"
    if not isinstance(error, typer.BadParameter) or (error.param is None and error.param_hint is None):
        return message
    if not error.message:
        return message  # a parameter that is missing
    hint = str(error.param_hint or (error.param and error.param.opts[0]))
    cause: Any = error.__cause__
    details: list[dict[str, Any]] = cause.errors() if hasattr(cause, "errors") else []
    if details and details[0]["type"] in _EXPECTED:
        return f"{hint}: {str(details[0]['input'])!r} found, expected {_EXPECTED[details[0]['type']]}"
    if found := _CHOICES.search(message):
        choices = found["choices"].rstrip(".").replace("'", "")
        meant = near(found["value"].strip("'"), choices.split(", "))
        return f"{hint}: {found['value']} found, expected one of {choices}{meant}"
    return f"{hint}: {error.message}"


def _exit_code(error: Exception) -> int:
    """The status that an error ends with."""
    return int(getattr(error, "exit_code", INPUT_ERROR))


def _line(error: Exception) -> str:
    """An error as one line; what the system says gets its file and a way out, what nobody foresaw its type."""
    if isinstance(error, HeadsmithError):
        return str(error)
    if not isinstance(error, OSError):
        text = " ".join(str(error).split())[:300]
        return (
            f"{type(error).__name__}: {text}; an input that was not expected, or a fault of headsmith: "
            "`headsmith --debug COMMAND` shows where"
        )
    if is_full_disk(error):
        return full_disk_message(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check the path and its permissions"


def _say(message: str) -> None:
    """One line on standard error, whatever stands in the message."""
    if first_process():
        with suppress(OSError):  # the terminal is closed
            terminal = Terminal(stderr=True, soft_wrap=True, highlight=False)
            terminal.print(f"headsmith: {printable(message)}", markup=False)

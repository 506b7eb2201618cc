"""Writes docs/commands.md, the reference of the command line, from the commands themselves.

Run it after a change of a command: python docs/write_commands.py.
"""

from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, get_args

import typer.main

from headsmith.cli import app

PAGE = Path(__file__).with_name("commands.md")
START = """# Command reference

`python docs/write_commands.py` writes this page from the commands; a test fails where it is not current.
`--help` after a command says the same in the terminal.

`headsmith --debug COMMAND` shows the traceback of an error, `headsmith --version` the version, and
`headsmith --install-completion` completes commands and options in your shell.
[The statuses](troubleshooting.md#statuses) that commands end with are the same for all of them.
"""


def reference() -> str:
    """The page, as it should be."""
    commands: dict[str, Any] = typer.main.get_command(app).commands
    index = ["| command | what it does |", "| --- | --- |"]
    index += [f"| [`{name}`](#{name}) | {_cell(command.help)} |" for name, command in commands.items()]
    sections = [_section(name, command) for name, command in commands.items()]
    return "\n".join([START, *index, "", "\n\n".join(sections), ""])


def _section(name: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([f"headsmith {name}", *map(_place, arguments), "[OPTIONS]"])
    rows = ["| | | default |", "| --- | --- | --- |", *map(_row, command.params)]
    return "\n".join([f"## {name}", "", _cell(command.help), "", f"Usage: `{usage}`", "", *rows])


def _place(argument: Any) -> str:
    name = f"{argument.name.upper()}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _row(param: Any) -> str:
    names = [_place(param)] if param.param_type_name == "argument" else [*param.opts, *param.secondary_opts]
    annotation = param.type_descriptor.annotation
    kind = next(iter(get_args(annotation)), annotation)
    choices = ", ".join(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else ""
    text = f"{param.help or ''}{f' One of {choices}.' * bool(choices)}"
    return f"| {', '.join(f'`{name}`' for name in names)} | {_cell(text)} | {_default(param)} |"


def _default(param: Any) -> str:
    """What holds where an option is left out: the words that the help shows, or the value."""
    if param.required:
        return "required"
    if isinstance(param.show_default, str):
        return _cell(param.show_default)
    if param.is_flag:
        return "yes" if param.default else "no"
    values = param.default if isinstance(param.default, list | tuple) else [param.default]
    return ", ".join(str(value.value if isinstance(value, Enum) else value) for value in values if value is not None)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")

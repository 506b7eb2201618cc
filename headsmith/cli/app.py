"""The application that the commands belong to."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..command_errors import Command, Commands, SeveralCommand
from ..core.terminal import LogFormatter, Once
from ..core.version import __version__


class App(typer.Typer):
    """An application whose commands are `Command`."""

    def command(self, name: str | None = None, *, several: bool = False, **options: Any) -> Callable[[Any], Any]:
        """Register a command, as Typer does; with ``several`` an option with many values takes all that follow it."""
        return super().command(name, cls=SeveralCommand if several else Command, **options)


app = App(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Train heads on frozen backbones, export them, and measure the exported file."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("headsmith: %(message)s"))
    handler.addFilter(Once())
    logging.basicConfig(handlers=[handler], level=logging.ERROR)
    logging.getLogger("headsmith").setLevel(logging.WARNING)

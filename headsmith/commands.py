"""How the command line ends: a user's mistake is one line and a status, never a traceback."""

import errno
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

_MAKE_ROOM = "make room and run the same command again"
_ADVICE = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "the limit on the size of a file was reached: raise it (ulimit -f), or use another file system",
}
INPUT_ERROR, INTERRUPTED, TERMINATED = 2, 130, 128 + signal.SIGTERM


class Commands(TyperGroup):
    """The sub-commands; an expected error becomes an exit code, and ``--debug`` shows its traceback as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the sub-command; without any argument, show the help."""
        if not args:
            return super().parse_args(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            raise _misused(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; SIGTERM ends it as Ctrl-C does, so that what is half written goes."""
        try:
            with _terminable():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except TyperException as error:
            raise _misused(error) from None
        except KeyboardInterrupt as stop:
            _say("interrupted: nothing half written was left; the same command goes on from what is finished")
            raise typer.Exit(TERMINATED if isinstance(stop, _Terminated) else INTERRUPTED) from None
        except (ValueError, OSError, RuntimeError) as error:
            code = _exit_code(error)
            if code is None:
                raise
            if ctx.params.get("debug"):
                traceback.print_exc()
            _say(_line(error))
            raise typer.Exit(code) from None


def _misused(error: Any) -> typer.Exit:
    """Say what is wrong with the command line, and where its help is."""
    path = error.ctx.command_path if getattr(error, "ctx", None) else "headsmith"
    _say(f"{' '.join(error.format_message().split()).rstrip('.')}; see {path} --help")
    return typer.Exit(error.exit_code)


class _Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def _terminate(*_: object) -> None:
    raise _Terminated


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts the main thread; the handler that was there before comes back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit_code(error: Exception) -> int | None:
    """The status that an error ends with; None for one that is no mistake of the user's."""
    return INPUT_ERROR if isinstance(error, OSError) else getattr(error, "exit_code", None)


def _line(error: Exception) -> str:
    """An error as one line; what the system says gets its file and a way out."""
    if not isinstance(error, OSError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    advice = _ADVICE.get(error.errno or 0, "check the path and its permissions")
    return f"{where}{error.strerror or error}; {advice}"


def _say(message: str) -> None:
    if os.environ.get("RANK", "0") != "0":
        return  # of the processes that torchrun starts, the first one speaks
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"headsmith: {message}", markup=False)

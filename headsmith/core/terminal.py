"""What is printed for people, with the text of files made harmless."""

import logging
import os
from typing import Any

from rich import markup
from rich.console import Console
from rich.text import Text

from .printable import printable


class Terminal(Console):
    r"""rich's console, in which control characters of any printed string are visible: ``\x1b`` instead of an escape.

    Labels, ids and file names reach every table and message. Line breaks stay, for tables; `escape` shows them too.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """A string, or the cell of a table, as rich's text."""
        return super().render_str(printable(text, keep="\n"), **options)


def escape(text: str) -> str:
    """Text from a file for a string with rich's markup: neither markup nor control characters of its own count."""
    return markup.escape(printable(text))


def first_process() -> bool:
    """Whether this is the one of the processes of torchrun that speaks."""
    return os.environ.get("RANK", "0") == "0"


class Once(logging.Filter):
    """Lets each line pass once, however often a command comes to what it is about."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is a new one."""
        line = record.getMessage()
        new = line not in self._said
        self._said.add(line)
        return new


class LogFormatter(logging.Formatter):
    """One line a warning, whatever stands in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a traceback below it keeps its lines."""
        record.msg, record.args = printable(record.getMessage()), None
        return super().format(record)

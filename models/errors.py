"""The error for what a user can put right."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: the message is one line that says what was found, what was expected, and what to do.

    The command line prints that line and exits with status `exit_code`.
    """

    exit_code = 2


def near(name: str, known: Iterable[str]) -> str:
    """A hint with the names closest to a mistyped one, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(found)}?" if found else ""

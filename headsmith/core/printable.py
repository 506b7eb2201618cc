"""Text from files on its way to a terminal."""

import json
import unicodedata
from typing import Any

_LONGEST = 60
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Emoji and some scripts are joined or told apart by these; they move nothing on a terminal.
_HARMLESS = {"\u200c", "\u200d", "\ufe0e", "\ufe0f"}


def printable(text: str, *, keep: str = "") -> str:
    r"""The text with control characters made visible: an escape is shown as ``\x1b``, a line break as ``\n``.

    Whatever comes from a file (labels, ids, names, messages of libraries) passes here before it is printed, so that it
    cannot move the cursor, change colours, or hide or reorder what stands beside it.

    Args:
        text: Any text.
        keep: Control characters that stay as they are, such as ``\n`` in a table of several lines.
    """
    if text.isprintable():
        return text
    return "".join(_shown(letter) if letter not in keep else letter for letter in text)


def short(text: str, most: int = _LONGEST) -> str:
    """A text on one line without its middle, as names and values of files stand in a message.

    Args:
        text: Any text.
        most: Letters that stay at the most.
    """
    return printable(text if len(text) <= most else f"{text[: most // 2]}…{text[(1 - most) // 2 :]}")


def shown(value: Any) -> str:
    """What was found in place of something else, in a few words: a plain value as Python writes it, else its type."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else repr(short(value))
    if value is None or isinstance(value, bool | int | float | bytes | list | tuple | dict):
        try:
            return short(repr(value), _LONGEST)
        except ValueError:  # an integer of more digits than Python writes
            return "a number of thousands of digits"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def json_printable(text: str) -> str:
    r"""The same for the text of a JSON value, which stays the same value: an escape becomes ``\u001b``."""
    if text.isprintable():
        return text
    return "".join(json.dumps(letter)[1:-1] if letter != "\n" and _hidden(letter) else letter for letter in text)


def _shown(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii") if _hidden(letter) else letter


def _hidden(letter: str) -> bool:
    return letter not in _HARMLESS and unicodedata.category(letter) in _INVISIBLE

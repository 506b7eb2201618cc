"""The errors that a user meets. Each kind has a type of its own, and all have one base."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from .printable import printable, short

_LONGEST = 1500
# Of difflib's ratio: "sdg" is like "sgd" (0.67), "out" is not like "dropout" (0.6).
_ALIKE = 0.65
# A command in backticks, which stays; or a flag.
_FLAG = re.compile(r"`headsmith [^`]*`|(?<![\w-])--(?P<name>[a-z][a-z0-9-]*)")
# Flags that are called otherwise than their keyword.
_KEYWORDS = {"format": "formats", "input": "input_format"}


def _keyword(found: re.Match[str]) -> str:
    if found["name"] is None:
        return found[0]
    name = _KEYWORDS.get(found["name"], found["name"].replace("-", "_"))
    return name if found.start() == 0 else f"`{name}`"


def with_keywords(message: object) -> str:
    """A message with flags (``--p-k``) in the words of Python: ``p_k`` at the start, else in backticks."""
    return _FLAG.sub(_keyword, str(message))


class HeadsmithError(Exception):
    """What went wrong, in one line; the command line prints it and ends with status `exit_code`.

    A flag in the message becomes the keyword of the Python functions, see `with_keywords`; the command line turns it
    into the flag again. Control characters, which may come from a file's names and from messages of libraries, are
    made visible. The middle of a message of thousands of letters is left out.

    Attributes:
        keyword: The argument that the message begins with, by its keyword; ``None`` where it begins with a path, or
            with anything else.
    """

    exit_code: int

    def __init__(self, message: object, *, keyword: str | None = None) -> None:
        """Say what went wrong.

        Args:
            message: What is wrong.
            keyword: What it begins with, where that is a keyword; for a flag nobody need say it.
        """
        flag = _FLAG.match(str(message))
        self.keyword = keyword if flag is None or flag["name"] is None else _keyword(flag)
        text = printable(with_keywords(message))
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}")


class InputError(HeadsmithError, ValueError):
    """Bad input: the message says what was found, what was expected, and what to do."""

    exit_code = 2


class ProviderError(InputError):
    """What should run a file cannot run here: no such device, driver or build of the runtime."""


class DamagedFileError(InputError):
    """A file is not what its writer wrote: truncated, changed, or of another bundle."""


@contextmanager
def keeping(said: Callable[[], str]) -> Iterator[None]:
    """Let an interruption of the block carry a note of what it kept, for whoever tells of it.

    Args:
        said: What is kept, and how to go on, in words; empty where that is nothing.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        if kept := said():
            stop.add_note(kept)
        raise


def near(name: str, known: Iterable[str]) -> str:
    """A hint with the names closest to a mistyped one, or those whose initials it is (``lr``), or nothing.

    Args:
        name: What was given.
        known: What there is.
    """
    alike = {_plain(one): one for one in known}
    found = difflib.get_close_matches(_plain(name), alike, n=3, cutoff=_ALIKE)
    found = found or [one for one in alike if "_" in one and "".join(word[:1] for word in one.split("_")) == name]
    return f"; did you mean {' or '.join(short(alike[one]) for one in found)}?" if found else ""


def _plain(name: str) -> str:
    """A name as people confuse them: capitals and the kind of dash do not count."""
    return name.lower().replace("-", "_")

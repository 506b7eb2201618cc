"""Text files that a user wrote: one way to read them all."""

from pathlib import Path

from .errors import InputError
from .files import regular_file

_MOST_BYTES = 1 << 30


def read_text(path: str | Path, *, most: int = _MOST_BYTES) -> str:
    r"""The text of a file that a user wrote: UTF-8 with or without a byte order mark, line ends as ``\n``.

    Args:
        path: The file.
        most: Bytes that such a file may have.

    Raises:
        InputError: The file is missing, no regular file, too large, or not UTF-8; the message names the first bad byte.
    """
    file = regular_file(path)
    if (size := file.stat().st_size) > most:
        raise InputError(f"{path}: {size:,} bytes, expected a text file of at most {most:,}")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}: line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8, expected UTF-8 text; save the "
            "file as UTF-8"
        ) from None


def read_lines(path: str | Path) -> list[str]:
    """The lines of such a file without their ends; blank lines at the end of the file do not count.

    Raises:
        InputError: See `read_text`.
    """
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines

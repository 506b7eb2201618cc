"""What is said of a full disk, of a quota and of a limit on the size of files."""

import errno
import os

_MAKE_ROOM = "make room and run the same command again"
_ADVICE = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "the limit on the size of a file was reached: raise it (ulimit -f), or use another file system",
}


def is_full_disk(error: OSError) -> bool:
    """Whether there was no room to write."""
    return error.errno in _ADVICE


def full_disk_behind(error: BaseException | None) -> OSError | None:
    """The full disk that an error stands for, in the words of whatever library; ``None`` where it is something else."""
    if error is None:
        return None
    if isinstance(error, OSError) and is_full_disk(error):
        return error
    if os.strerror(errno.ENOSPC) in str(error):
        return full_disk_behind(error.__cause__) or OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return full_disk_behind(error.__cause__)


def full_disk_message(error: OSError, kept: str = "") -> str:
    """One line: the file, what the system says, what is kept, and what to do.

    Args:
        error: For which `is_full_disk` holds.
        kept: What is kept, in words.
    """
    parts = (str(error.strerror), kept, _ADVICE[error.errno or 0])
    where = f"{error.filename}: " if error.filename else ""
    return where + "; ".join(filter(None, parts))

"""Temporary files and folders beside an output: held while they are made; what a killed run left is put right."""

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .signals import if_ended

if sys.platform != "win32":  # which does not lock folders, so that there nothing is taken away
    import fcntl

_log = logging.getLogger(__name__)


@contextmanager
def temporary(path: Path, suffix: str, *, folder: bool) -> Iterator[Path]:
    """A new file or folder beside ``path``, removed at the end, if it is still there.

    The system knows it as held until this process ends, however it ends: `tidy` takes away only what nobody holds.

    Args:
        path: What it is for.
        suffix: ``.tmp`` for what is being made, ``.old`` for a folder that is being replaced.
        folder: Whether it is a folder.
    """
    made, descriptor = _held(lambda: _make(path, suffix, folder))
    try:
        with if_ended(lambda: _put_right(made, path)):
            yield made
    finally:
        _remove(made)
        if descriptor is not None:
            os.close(descriptor)


def tidy(path: Path) -> None:
    """Put right what killed runs left beside ``path``, but nothing that a living process holds.

    What they had half written is removed. A folder that was moved away for a new one, which never came, comes back.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.\w+\.(tmp|old)")
    if sys.platform == "win32" or not path.parent.is_dir():
        return
    with os.scandir(path.parent) as entries:
        found = sorted(Path(entry.path) for entry in entries if name.fullmatch(entry.name))
    for left in found:
        descriptor = _hold(left)
        if descriptor is None:
            continue
        try:
            if _put_right(left, path):
                _log.warning("%s: came back; a run that was to replace it was killed", path)
            else:
                _log.warning("%s: removed; a run that was killed left it half written", left)
        finally:
            os.close(descriptor)


def _put_right(left: Path, path: Path) -> bool:
    """Remove what is half written; whether a folder that was moved away for it came back."""
    back = left.suffix == ".old" and (left / path.name).exists() and not path.exists()
    if back:
        (left / path.name).rename(path)
    _remove(left)
    return back


def _make(path: Path, suffix: str, folder: bool) -> Path:
    prefix = f".{path.name}."
    if folder:
        return Path(tempfile.mkdtemp(suffix, prefix, path.parent))
    handle, name = tempfile.mkstemp(suffix, prefix, path.parent)
    os.close(handle)
    return Path(name)


def _held(make: Callable[[], Path]) -> tuple[Path, int | None]:
    """Something new, and the descriptor that holds it: made again if a `tidy` came between."""
    while True:
        made = make()
        if sys.platform == "win32":
            return made, None
        descriptor = os.open(made, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        except OSError:  # a file system without locks, where nothing can be taken away either
            return made, descriptor
        if made.exists():
            return made, descriptor
        os.close(descriptor)


def _hold(left: Path) -> int | None:
    """The descriptor that holds what nobody else does, or None."""
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # gone, or not ours
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

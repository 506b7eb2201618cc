"""Several processes at one extraction: who takes part, who computes which part, who puts the result in place.

Each process holds a lock on a file of its own while it takes part, and one on each part that it computes. The system
frees both when it ends, however it ends, so that what a killed process had taken is taken over by the others.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from filelock import FileLock, Timeout

from ....core.errors import DamagedFileError, InputError
from .request import Request, differences
from .shards import REQUEST, open_partial, partial_request, read_partial_request

_POLL, _PATIENCE = 0.05, 60
_ANOTHER = "another extraction is writing it; wait for that, or choose another `out`"


def partial_of(out: Path) -> Path:
    """The folder of the unfinished extraction to ``out``."""
    return out.resolve().with_name(f"{out.resolve().name}.partial")


class Worker:
    """A process that takes part in an extraction, until it leaves (as a context manager)."""

    def __init__(self, out: Path, request: Request) -> None:
        self.out, self.partial, self.request = out, partial_of(out), request
        self.mark = FileLock(self.partial / f".worker-{uuid4().hex}.lock", timeout=0)
        self.mark.acquire()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        drop(self.mark)
        with suppress(Timeout):
            lock = _try_lock(self.out)
            if kind is not None and not _occupied(self.partial) and not any(self.partial.glob("[!.]*.arrow*")):
                shutil.rmtree(self.partial, ignore_errors=True)  # nothing to go on from
            _release_lock(self.partial, lock)

    def listing(self) -> set[str] | None:
        """The names of what is in the partial folder, or None where another process has put the result in place."""
        try:
            names = {path.name for path in self.partial.iterdir()}
        except FileNotFoundError:
            return None
        return names if Path(self.mark.lock_file).name in names else None

    def lease(self, name: str) -> FileLock | None:
        """The right to compute one part, or None where another process has it or the part is there.

        Released with `drop`.
        """
        names = self.listing()
        if names is None or name in names:
            return None
        lease = FileLock(self.partial / f".{name}.lock", timeout=0)
        try:
            lease.acquire()
        except Timeout:
            return None
        names = self.listing()
        if names is None or name in names:
            drop(lease)
            return None
        return lease

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the other processes, and new ones, away."""
        with exclusive(self.out, self.request):
            yield


def join(out: Path, request: Request, overwrite: bool, is_there: Callable[[], bool]) -> Worker | None:
    """Begin an extraction, go on with one, or help with one that is under way.

    Args:
        out: Where the feature set is to be.
        request: The parts that decide the features.
        overwrite: Whether an unfinished extraction that nobody works on is thrown away.
        is_there: Whether ``out`` holds what is asked for, so that nothing is to be done.

    Returns:
        None where nothing is to be done.

    Raises:
        InputError: Another extraction is writing to ``out``, or began to and was left unfinished.
    """
    partial = partial_of(out)
    partial.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(out, request):
        if _occupied(partial):
            _check_same(out, request)
            return Worker(out, request)
        if is_there():
            shutil.rmtree(partial, ignore_errors=True)
            return None
        if overwrite and (partial / REQUEST).is_file():
            shutil.rmtree(partial)
        open_partial(partial, request)
        return Worker(out, request)


@contextmanager
def exclusive(out: Path, request: Request) -> Iterator[None]:
    """Let one process at a time begin, end or replace an extraction to ``out``.

    Raises:
        InputError: The one inside works on something else, or does not say on what.
    """
    lock = _wait_for_lock(out, request)
    try:
        yield
    finally:
        _release_lock(partial_of(out), lock)


def _wait_for_lock(out: Path, request: Request) -> FileLock:
    nameless_until = time.monotonic() + _PATIENCE
    while True:
        try:
            return _try_lock(out, _POLL)
        except Timeout:
            if (partial_of(out) / REQUEST).exists():
                _check_same(out, request)
            elif time.monotonic() > nameless_until:
                raise InputError(f"{out}: {_ANOTHER}") from None


def _try_lock(out: Path, timeout: float = 0) -> FileLock:
    lock = FileLock(out.resolve().with_name(f".{out.resolve().name}.lock"), timeout=timeout)
    lock.acquire()
    return lock


def _release_lock(partial: Path, lock: FileLock) -> None:
    """Open the gate; the last process takes the lock files away, those of killed processes too."""
    if _occupied(partial):
        lock.release()
        return
    for path in partial.glob(".*.lock"):
        path.unlink(missing_ok=True)
    drop(lock)


def _occupied(partial: Path) -> bool:
    return any(_is_held(path) for path in partial.glob(".worker-*.lock"))


def _is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def _check_same(out: Path, request: Request) -> None:
    try:
        found = read_partial_request(partial_of(out))
    except DamagedFileError:
        raise
    except InputError:
        return  # put in place this very moment
    changed = differences(found, partial_request(request))
    if changed:
        raise InputError(f"{out}: {_ANOTHER} (that one is with {changed})")


def drop(lock: FileLock) -> None:
    """Release a lock and remove its file: only where nobody need find it any more."""
    with suppress(PermissionError):  # Windows keeps a file that is open
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()

"""How a process ends that is asked to, even while its main thread is in a library that never returns.

Python runs handlers of signals in the main thread, between two steps of its own: never while onnxruntime runs an
endless loop. The byte that `signal.set_wakeup_fd` gets is written at once, and another thread waits for it.
"""

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from .terminal import first_process

# Seconds that the main thread has: to hear of the first signal, to end what it does then, and after one more signal.
HEAR, UNWIND, AGAIN = 3.0, 8.0, 1.0
_TWICE = 0.2  # timeout(1) sends a signal to the process and to its group: it is still one
# A closed terminal sends the third one, which Windows does not know.
_ENDS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_SHOW_CURSOR = "\x1b[?25h"
_actions: dict[object, Callable[[], object]] = {}
_watching = False


class EndedError(KeyboardInterrupt):
    """A signal that asks for an end came; ``code`` is the status that a shell gives it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


@contextmanager
def if_ended(action: Callable[[], object]) -> Iterator[None]:
    """Do this where the process ends during the block without that the block does."""
    key = object()
    _actions[key] = action
    try:
        yield
    finally:
        del _actions[key]


@contextmanager
def endable() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise an `EndedError` in the main thread, and end the process if it does not hear.

    It has `HEAR` seconds to hear of the first one and `UNWIND` to come to its end; SIGINT alone waits for as long as
    it takes. One more signal leaves `AGAIN`. What is ignored (nohup) stays so; at the end the old handlers are back. In
    other threads nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = [number for number in _ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    heard = threading.Event()

    def end(number: int, _: object) -> None:
        if not heard.is_set():  # once: what is being put right goes on
            heard.set()
            raise EndedError(number)

    ours, written = socket.socketpair()
    written.setblocking(False)
    with closing(ours), closing(written), _woken(written):
        watch = threading.Thread(target=_watch, args=(ours, asked, heard), daemon=True)
        watch.start()
        before = {number: signal.signal(number, end) for number in asked}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            written.shutdown(socket.SHUT_WR)
            watch.join()


@contextmanager
def _woken(written: socket.socket) -> Iterator[None]:
    global _watching
    before, was = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False), _watching
    _watching = True
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        _watching = was


def _forget() -> None:
    """In a forked process, whose signals are no business of the one it comes from."""
    if _watching:
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _watch(ours: socket.socket, asked: list[signal.Signals], heard: threading.Event) -> None:
    """Wait for a signal, then for the end of the block, and end the process where that does not come."""
    try:
        first = _next(ours, asked, None)
        time.sleep(_TWICE)
        _next(ours, asked, 0)
        last = _next(ours, asked, HEAR - _TWICE)
        if last is None and not heard.is_set() and first == signal.SIGINT:
            _say("a library is at work and does not hear; once more ends it")
        if last is None and (heard.is_set() or first == signal.SIGINT):
            last = _next(ours, asked, None if first == signal.SIGINT else UNWIND - HEAR)
        if last is not None:
            _next(ours, [], AGAIN)
        _end_now(last or first or 0)
    except EOFError:
        return


def _next(ours: socket.socket, asked: list[signal.Signals], seconds: float | None) -> int | None:
    """The next of the signals; ``None`` where none came within so many seconds.

    Raises:
        EOFError: The block is over.
    """
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([ours], [], [], left)[0]:
            return None
        came = ours.recv(64)
        if not came:
            raise EOFError
        if found := [number for number in came if number in asked]:
            return found[0]


def _end_now(number: int) -> None:
    """End the process from another thread than the main one, after what `if_ended` was told."""
    for action in reversed([*_actions.values()]):
        with suppress(Exception):  # the next one has to be done whatever this one meets
            action()
    _say("interrupted: a library was at work and did not hear; nothing half written was left")
    os._exit(128 + number)


def _say(message: str) -> None:
    """One line on standard error, past the locks that the main thread may hold."""
    if first_process():
        with suppress(OSError):  # the terminal is closed
            start = f"{_SHOW_CURSOR}\r\n" if os.isatty(2) else ""
            os.write(2, f"{start}headsmith: {message}\n".encode())

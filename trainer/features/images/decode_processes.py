"""The map of `threads` in forked processes, where threads would wait for Python's lock."""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from ....core.errors import InputError

In = TypeVar("In")
Out = TypeVar("Out")
# Items that go to a process at once, and how many times that wait for each of them.
_CHUNK, _WAITING = 8, 2
_PR_SET_PDEATHSIG = 1  # of Linux' prctl(2)


def can_fork() -> bool:
    """Whether this process may and should be forked: on Linux, and if it is no child that must not have any."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


class _Work(Dataset[Any]):
    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __getitem__(self, item: Any) -> Any:
        return self._work(item)


def ordered_map(
    work: Callable[[In], Out], items: Iterable[In], workers: int, *, ahead: int
) -> Generator[Out, None, None]:
    """``map`` in forked processes: results in the order of ``items``, which are drawn some at a time.

    Args:
        work: Must not use a GPU; what it returns is pickled.
        items: What to work on.
        workers: Processes. They end when the iterator is exhausted or closed, or when this process dies.
        ahead: How many items may be begun before their turn, about: at least two a process.

    Raises:
        InputError: A process was killed.
    """
    size = min(max(ahead // (_WAITING * workers), 1), _CHUNK)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than CPUs: as asked
        loader = DataLoader(
            _Work(work),
            batch_sampler=_chunks(iter(items), size),
            num_workers=workers,
            collate_fn=list,
            prefetch_factor=_WAITING,
            multiprocessing_context="fork",
            worker_init_fn=partial(_begin, os.getpid()),
            generator=torch.Generator(),  # not the one of whoever calls
        )
        running = iter(loader)
    try:
        for results in running:
            yield from results
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise InputError(
            f"--workers: a process that decodes images was killed ({error}), for want of memory perhaps; run the same "
            "command again, with fewer"
        ) from None


def _begin(parent: int, _: int) -> None:
    """End with the parent, even if it is killed; leave what is shared with it unwritten by the garbage collector.

    Ctrl-C is for the parent, which then tells its workers to end: one that ended by itself would wait to be read.
    A live display of the parent's is in other hands, and its lock may be held for ever: warnings go past it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    gc.freeze()


def _chunks(items: Iterator[In], size: int) -> Iterator[list[In]]:
    while chunk := list(islice(items, size)):
        yield chunk

"""Work in threads with results in order and a bound on what waits."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def ordered_map(
    work: Callable[[In], Out], items: Iterable[In], workers: int, *, ahead: int
) -> Generator[Out, None, None]:
    """``map`` in threads: results in the order of ``items``, with at most ``ahead`` of them begun before their turn.

    What ``work`` raises is raised at its place. Closing the iterator cancels what has not begun.
    """
    waiting: deque[Future[Out]] = deque()
    executor = ThreadPoolExecutor(workers, thread_name_prefix="headsmith")
    try:
        for item in items:
            waiting.append(executor.submit(work, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)

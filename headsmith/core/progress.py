"""How far long work is, on standard error: a line that moves and goes on a terminal, a line now and then in a log."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from .terminal import Terminal, first_process

# Seconds between the lines in a log, and before the first one: what is over sooner needs none.
_EVERY, _FIRST = 10.0, 1.0
# What is cut last where the terminal is narrow: the bar has to be seen at 80 columns.
_WHOLE, _BAR = Column(no_wrap=True), 12


class Advance(Protocol):
    """What `progress` yields."""

    def __call__(self, count: int, status: str = "") -> None:
        """Say that ``count`` more are done."""


class _Count(ProgressColumn):
    def __init__(self, total: int, unit: str, epochs: int) -> None:
        super().__init__(table_column=_WHOLE)
        self.total, self.unit, self.epochs = total, unit, epochs

    def render(self, task: Task) -> Text:
        return Text(_count(int(task.completed), self.total, self.unit, self.epochs))


class _Speed(ProgressColumn):
    def __init__(self) -> None:
        super().__init__(table_column=_WHOLE)

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class _Status(ProgressColumn):
    """The column that gives way: its own text does not wrap."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["status"], no_wrap=True, overflow="ellipsis")


class _Lines:
    def __init__(self, title: str, total: int, unit: str, epochs: int, done: int) -> None:
        self.title, self.total, self.unit, self.epochs, self.done = title, total, unit, epochs, done
        self.due = time.monotonic() + min(_FIRST, _EVERY)

    def __call__(self, count: int, status: str = "") -> None:
        self.done += count
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + _EVERY
            _say(f"{self.title}: {_count(self.done, self.total, self.unit, self.epochs)}  {status}".rstrip())


def _count(done: int, total: int, unit: str, epochs: int) -> str:
    if not epochs:
        return f"{done:,} of {total:,} {unit}"
    epoch = min(max(-(-done // max(total, 1)), 1), epochs)  # what is done to the end counts for the epoch before
    return f"epoch {epoch} of {epochs}"


def _say(line: str) -> None:
    Terminal(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def stage(title: str) -> Iterator[None]:
    """Name what goes on and cannot say how far it is, if it takes longer than a second."""
    timer = threading.Timer(_FIRST, _say, [f"{title} ..."])
    timer.daemon = True
    if first_process():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def progress(
    title: str, total: int, unit: str, *, done: int = 0, epochs: int = 0, shown: bool = True
) -> Iterator[Advance]:
    """Show how far a long loop is.

    Args:
        title: What is going on.
        total: How many there are to do, or in an epoch.
        unit: What is counted, e.g. ``images``.
        done: How many an earlier run did.
        epochs: How often the loop goes over all of them; 0 where it is no training.
        shown: Whether to show it at all: one of several processes does.

    Yields:
        A function to call with how many more are done, and optionally with a few words on how it goes.
    """
    console = Terminal(stderr=True)
    if shown and not console.is_terminal:
        yield _Lines(title, total, unit, epochs, done)
        return
    columns = (
        TextColumn("{task.description}", table_column=_WHOLE),
        BarColumn(_BAR, table_column=_WHOLE),
        _Count(total, unit, epochs),
        TimeRemainingColumn(compact=True, table_column=_WHOLE),
        _Speed(),
        _Status(),
    )
    with Progress(*columns, console=console, transient=True, disable=not shown) as display:
        task = display.add_task(title, total=total * max(epochs, 1), completed=done, status="")
        yield lambda count, status="": display.update(task, advance=count, status=status)

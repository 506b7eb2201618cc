"""How far long work is, on standard error: a line that moves and goes on a terminal, a line a minute in a log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from .terminal import Terminal

# Seconds between the lines in a log.
_EVERY = 60.0


class Advance(Protocol):
    """What `progress` yields."""

    def __call__(self, count: int, status: str = "") -> None:
        """Say that ``count`` more are done."""


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} {self.unit}/s" if task.speed else "")


class _Lines:
    def __init__(self, console: Console, title: str, total: int, unit: str, done: int) -> None:
        self.console, self.title, self.total, self.unit, self.done = console, title, total, unit, done
        self.said = time.monotonic()

    def __call__(self, count: int, status: str = "") -> None:
        self.done += count
        now = time.monotonic()
        if now - self.said >= _EVERY:
            self.said = now
            line = f"{self.title}: {self.done:,} of {self.total:,} {self.unit}  {status}".rstrip()
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress(title: str, total: int, unit: str, *, done: int = 0, shown: bool = True) -> Iterator[Advance]:
    """Show how far a long loop is.

    Args:
        title: What is going on.
        total: How many there are to do.
        unit: What is counted, e.g. ``images``.
        done: How many an earlier run did.
        shown: Whether to show it at all: one of several processes does.

    Yields:
        A function to call with how many more are done, and optionally with a few words on how it goes.
    """
    console = Terminal(stderr=True)
    if shown and not console.is_terminal:
        yield _Lines(console, title, total, unit, done)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"),
        _Speed(unit),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not shown) as display:
        task = display.add_task(title, total=total, completed=done, status="")
        yield lambda count, status="": display.update(task, advance=count, status=status)

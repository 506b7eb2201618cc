"""A progress line for people: on standard error, only on a terminal, gone when done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


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
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"),
        _Speed(unit),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as display:
        task = display.add_task(title, total=total, completed=done, status="")
        yield lambda count, status="": display.update(task, advance=count, status=status)

"""What a person sees of a benchmark."""

import shlex
from typing import TYPE_CHECKING

from rich.table import Column, Table

from .core.printable import printable
from .core.terminal import escape
from .keywords_as_flags import with_flags
from .show import console, show_json, show_warnings

if TYPE_CHECKING:
    from .evaluate.benchmark import Benchmark, BenchmarkRow

DROPPED = ("memory MB", "MB", "head", "val %")


def show_benchmark(found: "Benchmark", as_json: bool) -> None:
    """The leaderboard, what failed, and in one sentence what to deploy."""
    if as_json:
        from .core.records import to_json

        show_json(to_json(found.record))
        return
    from .evaluate.benchmark.leaderboard import MARKDOWN

    rows = [row for row in found.rows if row.top1 is not None]
    columns = _columns(rows)
    wide = console.options.update(max_width=10_000)
    for heading in DROPPED:
        if console.measure(_drawn(columns), options=wide).maximum > console.width:
            del columns[heading]
    console.print(_drawn(columns), soft_wrap=False)
    for row in found.rows:
        if row.top1 is None:
            console.print(f"[red]{row.state}:[/] {escape(f'{row.name}: {with_flags(row.why_none)}')}")
    show_warnings(found.record.warnings)
    folder = shlex.quote(printable(str(found.path)))
    console.print(f"table: {escape(str(found.path / MARKDOWN))}; page: headsmith report {escape(folder)}")
    console.print(f"[bold]{escape(with_flags(found.record.sentence))}[/]")


def _columns(rows: "list[BenchmarkRow]") -> dict[str, list[str]]:
    columns = {
        "model": [escape(row.name) for row in rows],
        "": ["=" if row.marked else "" for row in rows],
        "top-1 %": [_share(row) for row in rows],
        "val %": ["" if row.val_top1 is None else f"{100 * row.val_top1.value:.1f}" for row in rows],
        "ms": ["" if row.latency is None else str(row.latency) for row in rows],
        "MB": ["" if row.file_mb is None else f"{row.file_mb:.1f}" for row in rows],
        "memory MB": ["" if row.memory_mb is None else f"{row.memory_mb:.0f}" for row in rows],
        "head": [row.loss for row in rows],
    }
    further = dict.fromkeys(provider for row in rows for provider in row.providers)
    for provider in further:
        found = [row.providers.get(provider) for row in rows]
        columns[f"ms, {provider}"] = ["" if one is None else str(one.latency or "failed") for one in found]
        columns[f"moved, {provider}"] = [
            "" if one is None or one.moved is None else f"{one.moved:.2g}" for one in found
        ]
    return columns


def _share(row: "BenchmarkRow") -> str:
    share = row.top1
    return "" if share is None else f"{100 * share.value:.1f} ({100 * share.low:.1f}-{100 * share.high:.1f})"


def _drawn(columns: dict[str, list[str]]) -> Table:
    first, *others = columns
    table = Table(Column(first, overflow="fold"), *(Column(name, justify="right", no_wrap=True) for name in others))
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table

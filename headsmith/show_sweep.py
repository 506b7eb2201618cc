"""What a person sees when a sweep ends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from .show import console, show_json

if TYPE_CHECKING:
    from .trainer.sweep import Sweep

LISTED = 20
_NOT_SHOWN = {"seed"}


def show_sweep(sweep: "Sweep", as_json: bool) -> None:
    """The best settings on validation, the chosen ones on test, and what makes the result doubtful."""
    if as_json:
        show_json(sweep.record)
        return
    record, folder = sweep.record, escape(str(sweep.path))
    axes = [name for name in record["axes"] if name not in _NOT_SHOWN]
    console.print(
        f"[bold]{folder}[/]  {record['heads']} heads in {record['banks']} banks, {record['seconds']:.1f} s, "
        f"{record['device']}"
    )
    console.print(_settings(sweep.settings, axes), soft_wrap=False)
    if len(sweep.settings) > LISTED:
        console.print(f"  ... and {len(sweep.settings) - LISTED} more in summary.csv")
    console.print(_contenders(record["contenders"], record["baseline"]), soft_wrap=False)
    console.print(f"every head: {folder}/sweep.csv  by setting: {folder}/summary.csv  picture: {folder}/sweep.png")
    console.print(f"the winner as a run: {folder}/best")
    for finding in sweep.findings:
        console.print(f"[yellow]doubt ({finding['code']}):[/] {escape(finding['message'])}")


def _settings(rows: Sequence[dict[str, Any]], axes: Sequence[str]) -> Table:
    """The best settings, by what varies."""
    losses = {(row["contender"], row["loss"]) for row in rows}
    by_name = len({contender for contender, _ in losses}) == len(losses)
    columns = ["contender", *(name for name in axes if not (name == "loss" and by_name))]
    table = Table(title="Settings, the best on validation first; accuracies in %")
    for name in columns:
        table.add_column(name, overflow="fold")
    for heading in ("seeds", "val top-1", "val top-5"):
        table.add_column(heading, no_wrap=True)
    for row in rows[:LISTED]:
        cells = [_cell(row[name]) for name in columns]
        table.add_row(*cells, _seeds(row), _spread(row, "val_top1"), _spread(row, "val_top5"))
    return table


def _contenders(rows: Sequence[dict[str, Any]], baseline: str | None) -> Table:
    """The chosen setting of every contender, on validation and test."""
    table = Table(title="What validation chose of each, scored on test once; accuracies in %")
    table.add_column("contender", overflow="fold", min_width=8)
    tested = [name for name in ("top1", "top5") if any(row[f"p_{name}"] is not None for row in rows)]
    results = [f"{split} {name}" for split in ("val", "test") for name in ("top-1", "top-5")]
    for heading in (*results, *(f"p {name}" for name in tested)):
        table.add_column(heading, no_wrap=True)
    if tested:
        table.caption = f"p: McNemar's exact test of the best seeds, against {escape(str(baseline))}"
    for row in rows:
        cells = [_spread(row, f"{split}_{name}") for split in ("val", "test") for name in ("top1", "top5")]
        table.add_row(escape(row["contender"]), *cells, *(_p(row[f"p_{name}"]) for name in tested))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else escape(str(value))


def _seeds(row: dict[str, Any]) -> str:
    return f"{row['seeds']} ({row['diverged']} diverged)" if row["diverged"] else str(row["seeds"])


def _spread(row: dict[str, Any], name: str) -> str:
    """A mean with its deviation over seeds, where there are several."""
    mean, deviation = row[f"{name}_mean"], row[f"{name}_std"]
    if mean is None:
        return "n/a"
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f}±{deviation:.1f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}"

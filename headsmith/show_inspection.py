"""What `headsmith inspect` shows."""

import dataclasses
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from .show import console, percent, show_json

if TYPE_CHECKING:
    from .trainer import Inspection
    from .trainer.features.inspection.inspection import SplitReport


def show_inspection(found: "Inspection", as_json: bool) -> None:
    """One line a split, the sanity check, and what is wrong."""
    if as_json:
        show_json(dataclasses.asdict(found))
        return
    console.print(
        f"[bold]{escape(found.path)}[/]  {found.classes:,} classes, D = {found.feature_dim}, {found.dtype}, "
        f"backbone {escape(found.backbone or 'not known')}\nsplits: {escape(found.split_rule)}"
    )
    table = Table("split", "rows", "rows a class", "norms", "zero", "repeated", "NaN", "Inf")
    for split, report in found.splits.items():
        table.add_row(split, f"{report.rows:,}", _per_class(report), *_values(report))
    console.print(table)
    near = found.neighbours
    if near is not None:
        console.print(
            f"{near.k} nearest of {near.train_rows:,} training rows: {percent(near.accuracy)} of {near.n:,} "
            f"{near.split} rows named rightly (always the largest class: {percent(near.chance)})"
        )
    for warning in found.warnings:
        console.print(f"[yellow]note:[/] {escape(warning)}")
    for problem in found.problems:
        console.print(f"[red]problem:[/] {escape(problem)}")
    if not found.problems:
        console.print("nothing that would spoil a training")


def _per_class(report: "SplitReport") -> str:
    counts = report.histogram.values()
    return f"{min(counts):,} to {max(counts):,}"


def _values(report: "SplitReport") -> list[str]:
    norms = "n/a" if report.norm is None else f"{report.norm[0]:.3g} to {report.norm[2]:.3g}"
    shares = [percent(found.count / report.rows) for found in (report.zero, report.duplicates)]
    return [norms, *shares, f"{report.nan.count:,}", f"{report.infinite.count:,}"]

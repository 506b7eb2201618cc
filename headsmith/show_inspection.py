"""What `headsmith inspect` shows."""

import dataclasses
from typing import TYPE_CHECKING

from rich.table import Table

from .core.counted import counted
from .core.printable import printable
from .core.terminal import escape
from .keywords_as_flags import with_flags
from .show import console, percent, show_json, show_warnings

if TYPE_CHECKING:
    from .trainer import Inspection
    from .trainer.features.inspection.report import SplitReport

NAMED = 3


def show_inspection(found: "Inspection", as_json: bool) -> None:
    """One line a split, its classes, the sanity check, and what is wrong."""
    if as_json:
        show_json(dataclasses.asdict(found))
        return
    console.print(
        f"[bold]{escape(found.path)}[/]  {counted(found.classes, 'class', 'classes')}, "
        f"D = {found.feature_dim}, {found.dtype}, "
        f"backbone {escape(found.backbone or 'not known')}\nsplits: {escape(found.split_rule)}"
    )
    table = Table("split", "rows", "rows a class", "norms", "zero", "repeated", "NaN", "Inf")
    for split, report in found.splits.items():
        table.add_row(split, f"{report.rows:,}", _per_class(report), *_values(report))
    console.print(table)
    for split, report in found.splits.items():
        if len(set(report.histogram.values())) > 1:
            console.print(printable(f"{split}, rows a class: {_histogram(report.histogram)}"), markup=False)
    for near in [report.neighbours for report in found.splits.values() if report.neighbours is not None]:
        console.print(
            f"{near.k} nearest of {near.train_rows:,} training rows: {percent(near.accuracy)} of {near.n:,} "
            f"{near.split} rows named rightly (the same answers in random order: {percent(near.shuffled)})"
        )
    show_warnings(found.warnings)
    for problem in found.problems:
        console.print(f"[red]problem ({problem.code}):[/] {escape(with_flags(problem.message))}")
    if not found.problems:
        count = len(found.warnings)
        but = f", but {count} warning{'s' if count > 1 else ''} above" if count else ""
        console.print(f"nothing that would spoil a training{but}")


def _per_class(report: "SplitReport") -> str:
    counts = report.histogram.values()
    return f"{min(counts):,} to {max(counts):,}"


def _histogram(counts: dict[str, int]) -> str:
    """Every class where they are few; else quartiles, and the classes farthest below and above the median."""
    ordered = sorted(counts, key=lambda name: counts[name])
    if len(ordered) <= 2 * NAMED:
        return _named(ordered, counts)
    quartiles = [counts[ordered[part * (len(ordered) - 1) // 4]] for part in range(5)]
    fewest = [name for name in ordered[:NAMED] if counts[name] < quartiles[2]]
    most = [name for name in ordered[: -NAMED - 1 : -1] if counts[name] > quartiles[2]]
    ends = [f"; {word} {_named(names, counts)}" for word, names in (("fewest", fewest), ("most", most)) if names]
    return f"quartiles {' | '.join(f'{count:,}' for count in quartiles)}{''.join(ends)}"


def _named(names: list[str], counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({counts[name]:,})" for name in names)


def _values(report: "SplitReport") -> list[str]:
    norms = "n/a" if report.norm is None else f"{report.norm[0]:.3g} to {report.norm[2]:.3g}"
    shares = [percent(found.count / report.rows) for found in (report.zero, report.duplicates)]
    return [norms, *shares, f"{report.nan.count:,}", f"{report.infinite.count:,}"]

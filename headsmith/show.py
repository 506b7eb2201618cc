"""What a person sees when a command ends."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from .core.counted import counted
from .core.printable import json_printable, printable, short
from .core.terminal import Terminal, escape, first_process
from .keywords_as_flags import with_flags

if TYPE_CHECKING:
    from .core.coded_warnings import CodedWarning
    from .evaluate import Prediction
    from .export import Bundle
    from .trainer import FeatureSet, Run
    from .trainer.features.images.samples import Unreadable

LISTED, KEPT = 10, 3

console = Terminal(soft_wrap=True, highlight=False, quiet=not first_process())


def percent(share: float | None) -> str:
    """A share as text in per cent; ``n/a`` for what has no value (top-5 of three classes)."""
    return "n/a" if share is None else f"{100 * share:.1f} %"


def show_json(value: Any) -> None:
    """Print a value as JSON, and nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    console.print(json_printable(text), markup=False)


def show_columns(
    columns: Mapping[str, Sequence[str]], dropped_first: Sequence[str], elsewhere: str, title: str | None = None
) -> None:
    """Print a table with the columns that the terminal has room for, and say which it has none for.

    Args:
        columns: Cells by heading; the first three columns are always kept.
        dropped_first: Headings that are dropped before others, in this order.
        elsewhere: What has all of them.
        title: Above the table.
    """
    shown, dropped = dict(columns), []
    wide = console.options.update(max_width=10_000)
    while console.measure(table := _drawn(shown, title), options=wide).maximum > console.width and len(shown) > KEPT:
        least = next((heading for heading in dropped_first if heading in shown), list(shown)[-1])
        del shown[least]
        dropped.append(least)
    console.print(table, soft_wrap=False)
    if dropped:
        console.print(f"no room here for {', '.join(dropped)}; {elsewhere} has them")


def _drawn(columns: Mapping[str, Sequence[str]], title: str | None) -> Table:
    first, *others = columns
    headings = [Column(name, justify="right", no_wrap=True) for name in others]
    table = Table(Column(first, overflow="fold"), *headings, title=title)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def show_feature_set(features: "FeatureSet") -> None:
    """Rows per split, and what could not be read; of several processes under torchrun only the first says it."""
    rows = "  ".join(f"{name} {count:,}" for name, count in features.manifest.splits.items())
    console.print(
        f"[bold]{escape(str(features.path))}[/]  {counted(len(features.class_names), 'class', 'classes')}, "
        f"D = {features.feature_dim}, {features.manifest.dtype}\nrows: {rows}  ({escape(features.manifest.split_rule)})"
    )
    if views := features.manifest.views:
        console.print(f"a training image is {counted(len(views), 'row')}: {'; '.join(views)}")
    show_warnings(features.manifest.warnings)
    if (remarks := features.manifest.remarks) and (backbone := features.manifest.backbone):
        _say_remarks(remarks, backbone.preprocessing.background)
    list_unreadable(features.manifest.unreadable)


def _say_remarks(found: dict[str, int], background: Sequence[int] | None) -> None:
    """How many images were more than plain RGB or grey, and what was done with them."""
    from .models.images import described

    for remark, count in zip(described(found, background), found.values(), strict=True):
        console.print(f"{counted(count, 'image')} with {remark}", markup=False)


def show_imported(features: "FeatureSet") -> None:
    """A feature set that was imported: also which columns were taken for what, and which were not read."""
    show_feature_set(features)
    imported = features.manifest.imported
    if imported is None:
        return
    roles: dict[str, dict[str, None]] = {}
    for columns in imported.columns.values():
        for role, name in columns.items():
            roles.setdefault(role, {})[name] = None
    read = [
        f"{role} {', '.join(map(short, list(names)[:LISTED]))}{', ...' * (len(names) > LISTED)}"
        for role, names in roles.items()
    ]
    console.print(printable(f"read: {'; '.join(read)}"), markup=False)
    if imported.not_read:
        console.print(printable(f"not read: {', '.join(map(short, imported.not_read))}"), markup=False)


def list_unreadable(unreadable: "Sequence[Unreadable]") -> None:
    """The first images that could not be read, with the reasons."""
    if not unreadable:
        return
    console.print(f"[yellow]{len(unreadable)} unreadable, left out:[/]")
    for one in unreadable[:LISTED]:
        console.print(printable(f"  {one.id}: {one.reason}"), markup=False)
    if len(unreadable) > LISTED:
        console.print(f"  ... and {len(unreadable) - LISTED} more in the manifest")


def show_warnings(warnings: "Sequence[CodedWarning]") -> None:
    """A line each."""
    for warning in warnings:
        console.print(f"[yellow]warning ({warning.code}):[/] {escape(with_flags(warning.message))}")


def show_run(run: "Run") -> None:
    """Accuracies of the kept head on validation and test."""
    results = run.record.results
    table = Table("split", "images" if run.record.features.source else "rows", "top-1", "top-5")
    for split, scores in (("val", results.val), ("test", results.test)):
        if scores is not None:
            table.add_row(split, f"{scores.n:,}", percent(scores.top1), percent(scores.top5))
    console.print(
        f"[bold]{escape(str(run.path))}[/]  {run.config.loss}, best epoch {results.best_epoch}, {results.seconds:.1f} s"
    )
    console.print(table)
    show_warnings(run.record.warnings)


def show_bundle(bundle: "Bundle") -> None:
    """The files of a bundle and how each compares with the Python module."""
    table = Table("file", "MB", "inputs", "largest difference", "top-1 equal", "top-5 sets equal", "flips")
    for name, report in bundle.manifest.parity.items():
        size = bundle.manifest.files[name].bytes / 1e6
        table.add_row(
            name,
            f"{size:.1f}",
            f"{report.n:,}",
            f"{report.max_abs_difference:.1e}",
            percent(report.top1_equal),
            percent(report.topk_equal),
            str(report.flips),
        )
    console.print(f"[bold]{escape(str(bundle.path))}[/]")
    console.print(table)
    show_warnings(bundle.manifest.warnings)
    if precision := bundle.manifest.precision:
        for kind, side in ((precision.precision, precision.lower), ("fp32", precision.full)):
            console.print(
                f"{kind} on {side.top1.n:,} validation inputs: top-1 {percent(side.top1.value)}, "
                f"{side.images_per_second:,.0f} a second"
            )
        console.print(escape(precision.power))
    if calibration := bundle.manifest.calibration:
        before, after = calibration.before["test"], calibration.after["test"]
        console.print(
            f"temperature {calibration.temperature:.3g}: held-out ECE {percent(before.ece)} -> "
            f"{percent(after.ece)}, NLL {before.nll:.3f} -> {after.nll:.3f}"
        )


def show_predictions(predictions: Sequence["Prediction"], as_json: bool) -> None:
    """The best labels of each image."""
    if as_json:
        show_json([dataclasses.asdict(prediction) for prediction in predictions])
        return
    for prediction in predictions:
        console.print(f"[bold]{escape(str(Path(prediction.path)))}[/]")
        if prediction.error is not None:
            console.print(f"  [red]{escape(prediction.error)}[/]")
        for label, score in zip(prediction.labels, prediction.scores, strict=True):
            console.print(printable(f"  {percent(score):>7}  {label}"), markup=False)
    for remark, count in Counter(remark for prediction in predictions for remark in prediction.remarks).items():
        console.print(f"{counted(count, 'image')} with {remark}", markup=False)

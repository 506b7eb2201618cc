"""What a person sees of an evaluation."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table

from .show import LISTED, console, list_unreadable, show_json

if TYPE_CHECKING:
    from .evaluate import EvalResult, Results
    from .export.accuracy import Share


def show_results(results: "Results", as_json: bool) -> None:
    """All models of a results folder, the best first: accuracies with 95 % intervals, who is tied, and speed."""
    if as_json:
        from .evaluate.results.typed_json import to_json

        show_json({name: to_json(getattr(results, name)) for name in ("data", "models", "failed")})
        return
    console.print(_table(results), soft_wrap=False)
    first = results[0]
    console.print(
        f"[bold]{escape(results.data.name)}[/]: {_scored(results)}on {first.n:,} images, {first.setup.provider}, "
        f"{first.setup.threads} threads, warm-up left out; = means tied with the best (McNemar's p, by Holm, at "
        "least 0.05)",
    )
    console.print(f"results and every prediction: {escape(str(results.path))}")
    for note in results.data.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    if first.duplicates:
        console.print(f"[yellow]note:[/] {first.duplicates} images repeat an earlier one, byte by byte; they count")
    for result in results:
        for note in result.notes:
            console.print(f"note: {escape(result.model)}: {escape(note)}")
        for flag in result.flags:
            console.print(f"[yellow]doubt:[/] {escape(result.model)}: {escape(flag)}")
        _show_reference(result)
    for failed in results.failed:
        console.print(f"[red]failed:[/] {escape(failed.model)}: {escape(failed.error)}")
    list_unreadable(first.unreadable)


def _table(results: "Results") -> Table:
    ks, subset = list(results[0].summary.top), results[0].subset
    few = [k for k in ks if subset and k <= subset.num_classes]
    names = [f"top-{k} %" for k in ks] + [f"top-{k} % of {subset.num_classes}" for k in few if subset]
    figures = [Column(name, justify="right", no_wrap=True) for name in (*names, "NLL", "ECE", "ms", "images/s", "MB")]
    table = Table(Column("model", overflow="fold"), Column("", no_wrap=True), *figures)
    tied = {place.name: place.tied for place in results.standings()}
    for result in results:
        summary, speed = result.summary, result.speed
        shares = [summary.top.get(k) for k in ks]
        shares += [result.subset.top.get(k) if result.subset else None for k in few]
        table.add_row(
            escape(result.model),
            "=" if tied[result.model] else "",
            *map(_share, shares),
            "n/a" if summary.nll is None else f"{summary.nll:.3f}",
            "n/a" if summary.ece is None else f"{summary.ece:.3f}",
            f"{speed.latency.p50:.2f}",
            f"{speed.images_per_second:,.0f}",
            f"{result.setup.bytes / 1e6:.1f}",
        )
    return table


def _scored(results: "Results") -> str:
    return "" if len(results) == 1 else f"{len(results)} models "


def _share(share: "Share | None") -> str:
    """``71.2 (70.8-71.6)``; ``n/a`` for what has no value (top-5 of three classes)."""
    return "n/a" if share is None else f"{100 * share.value:.1f} ({100 * share.low:.1f}-{100 * share.high:.1f})"


def _show_reference(result: "EvalResult") -> None:
    """Measured beside published, and beside another runtime."""
    verdict, against = result.verdict, result.against
    if verdict is not None and verdict.top1 is not None and verdict.difference is not None:
        word = "within" if verdict.within else "[yellow]outside[/] of"
        console.print(
            f"{escape(result.model)}: {100 * verdict.difference:+.2f} against the published {100 * verdict.top1:.2f} %"
            f", {word} the interval ({escape(verdict.source)})"
        )
    if against is not None:
        paired = against.difference
        console.print(
            f"{escape(result.model)} against {escape(against.runtime)}: {against.different} flips, {against.tie} ties, "
            f"top-1 {100 * paired.difference:+.2f} ({100 * paired.low:+.2f} to {100 * paired.high:+.2f})"
        )
        for sample in against.flipped[:LISTED]:
            console.print(f"  {sample}", markup=False)

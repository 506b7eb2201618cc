"""What a person sees of an evaluation."""

from typing import TYPE_CHECKING

from .core.coded_warnings import CodedWarning
from .core.counted import counted
from .core.printable import printable
from .core.terminal import escape
from .keywords_as_flags import with_flags
from .show import LISTED, console, list_unreadable, show_columns, show_json, show_warnings

if TYPE_CHECKING:
    from .evaluate import EvalResult, Results
    from .metrics.proportions import Share

DROPPED = ("ECE", "NLL", "MB", "images/s", "rows/s", "ms")


def show_results(results: "Results", as_json: bool) -> None:
    """All models of a results folder, the best first: accuracies with 95 % intervals, who is tied, and speed."""
    if as_json:
        from .core.records import to_json

        show_json({name: to_json(getattr(results, name)) for name in ("data", "models", "failed")})
        return
    show_columns(_columns(results), DROPPED, "results.csv")
    first = results[0]
    kind, providers = _kind(first), ", ".join(dict.fromkeys(result.setup.provider for result in results))
    console.print(
        f"[bold]{escape(results.data.name)}[/]: {_scored(results)}on {counted(first.n, kind)}, {providers}, "
        f"{counted(first.setup.threads, 'thread')}, warm-up left out; = means tied with the best (McNemar's p, by "
        "Holm, at least 0.05)",
    )
    console.print(f"results and every prediction: {escape(str(results.path))}")
    show_warnings(results.data.warnings)
    if first.duplicates:
        message = f"{first.duplicates} {kind} repeat an earlier one, byte by byte; they count"
        show_warnings([CodedWarning("duplicates", message)])
    _show_notes(results)
    for result in results:
        show_warnings([CodedWarning(one.code, f"{result.model}: {one.message}") for one in result.warnings])
        _show_reference(result)
    for failed in results.failed:
        console.print(f"[red]failed:[/] {escape(with_flags(failed.line))}")
    list_unreadable(first.unreadable)


def _show_notes(results: "Results") -> None:
    """Each note once, with the models that it is about, or without where it is about all of several."""
    about: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes:
            about.setdefault(note, []).append(result.model)
    for note, models in about.items():
        named = "" if 1 < len(models) == len(results) else f"{escape(', '.join(models))}: "
        console.print(f"note: {named}{escape(with_flags(note))}")


def _columns(results: "Results") -> dict[str, list[str]]:
    """The cells of each column by its heading: model, who is tied, top-k, then the further figures."""
    ks, subset = list(results[0].summary.top), results[0].subset
    tied = {place.name: place.tied for place in results.standings()}
    columns = {
        "model": [escape(result.model) for result in results],
        "": ["=" if tied[result.model] else "" for result in results],
    }
    columns |= {f"top-{k} %": [_share(result.summary.top.get(k)) for result in results] for k in ks}
    for k in [k for k in ks if subset and k <= subset.num_classes]:
        shares = [result.subset.top.get(k) if result.subset else None for result in results]
        columns[f"top-{k} % of {len(results.data.class_names)}"] = [_share(share) for share in shares]
    return columns | {
        "NLL": [_figure(result.summary.nll) for result in results],
        "ECE": [_figure(result.summary.ece) for result in results],
        "ms": [str(result.speed.latency or "n/a") for result in results],
        f"{_kind(results[0])}s/s": [f"{result.speed.images_per_second:,.0f}" for result in results],
        "MB": [f"{result.setup.bytes / 1e6:.1f}" for result in results],
    }


def _kind(result: "EvalResult") -> str:
    """What was answered, in the field's word."""
    return "image" if result.setup.image_size else "row"


def _figure(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


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
    if result.beside_cpu is not None:
        console.print(f"{escape(result.model)} under {escape(result.setup.provider_name)}: {result.beside_cpu}")
    if against is not None:
        paired = against.difference
        console.print(
            f"{escape(result.model)} against {escape(against.runtime)}: {against.different} flips, {against.tie} ties, "
            f"top-1 {100 * paired.difference:+.2f} ({100 * paired.low:+.2f} to {100 * paired.high:+.2f})"
        )
        for sample in against.flipped[:LISTED]:
            console.print(printable(f"  {sample}"), markup=False)

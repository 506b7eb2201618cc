"""What a person sees of two classifiers side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from .core.counted import counted
from .core.terminal import escape
from .show import LISTED, console, show_columns, show_json

if TYPE_CHECKING:
    from .evaluate.comparison import ChangedAnswer, Comparison, Part, TopK
    from .evaluate.statistics import PairedDifference

ALPHA, LARGEST = 0.05, 5
DROPPED = ("bootstrap", "only A", "only B", "n")


def show_comparison(comparison: "Comparison", as_json: bool) -> None:
    """Who is better, where, by how much, whether that is real, and which inputs flipped; A and B are the two."""
    if as_json:
        from .core.records import to_json

        show_json(to_json(comparison))
        return
    console.print(f"[bold]A[/]  {escape(comparison.first)}\n[bold]B[/]  {escape(comparison.second)}")
    console.print(f"on {counted(comparison.n, 'input')} of {escape(comparison.data)}; top-k in %, A - B in points")
    show_columns(_overall(comparison.top), DROPPED, "--json")
    for top in comparison.top:
        console.print(f"top-{top.k}: {_verdict(top.paired)}")
    if comparison.groups:
        show_columns(_parts(comparison.groups), DROPPED, "--json", "By group")
    if comparison.classes:
        differ = [part for part in comparison.classes if part.paired.difference]
        console.print(_leads(differ, len(comparison.classes)))
        if differ:
            show_columns(_parts(differ[:LARGEST]), DROPPED, "--json", "Largest differences by class")
    _show_flips(comparison.flips)


def _overall(rows: "Sequence[TopK]") -> dict[str, list[str]]:
    bounds = [top.bootstrap for top in rows]
    return {
        "k": [str(top.k) for top in rows],
        "A": [f"{100 * top.first:.1f}" for top in rows],
        "B": [f"{100 * top.second:.1f}" for top in rows],
        "A - B (95 %)": [_difference(top.paired) for top in rows],
        "bootstrap": [f"{_points(low)} to {_points(high)}" for low, high in bounds],
        "only A": [f"{top.paired.only_first:,}" for top in rows],
        "only B": [f"{top.paired.only_second:,}" for top in rows],
        "p": [_p(top.paired.p) for top in rows],
    }


def _parts(parts: "Sequence[Part]") -> dict[str, list[str]]:
    return {
        "": [_class(part.name) for part in parts],
        "A - B (95 %)": [_difference(part.paired) for part in parts],
        "p (Holm)": [_p(part.p) for part in parts],
        "n": [f"{part.paired.n:,}" for part in parts],
        "only A": [f"{part.paired.only_first:,}" for part in parts],
        "only B": [f"{part.paired.only_second:,}" for part in parts],
    }


def _verdict(pair: "PairedDifference") -> str:
    if pair.p >= ALPHA:
        return "these inputs cannot tell A and B apart (McNemar's exact test)"
    return f"[bold]{'A' if pair.difference > 0 else 'B'} is better[/] by more than chance (McNemar's exact test)"


def _leads(differ: "Sequence[Part]", classes: int) -> str:
    ahead = sum(part.paired.difference > 0 for part in differ)
    real = sum(part.p < ALPHA for part in differ)
    behind, level = len(differ) - ahead, classes - len(differ)
    return f"classes: A leads in {ahead:,}, B in {behind:,}, {level:,} are level; {real:,} by more than chance"


def _show_flips(flips: "Sequence[ChangedAnswer]") -> None:
    ahead = sum(flip.first_right and not flip.second_right for flip in flips)
    behind = sum(flip.second_right and not flip.first_right for flip in flips)
    console.print(
        f"flips: {counted(len(flips), 'input has', 'inputs have')} different answers; "
        f"A alone is right on {ahead:,}, B alone on {behind:,}"
    )
    if not flips:
        return
    table = Table()
    for heading in ("input", "is", "A says", "B says"):
        table.add_column(heading, overflow="fold")
    for flip in flips[:LISTED]:
        first = _answer(flip.first, flip.first_probability, flip.first_right)
        second = _answer(flip.second, flip.second_probability, flip.second_right)
        table.add_row(escape(flip.id), _class(flip.label), first, second)
    console.print(table, soft_wrap=False)
    if len(flips) > LISTED:
        console.print(f"  ... and {len(flips) - LISTED:,} more; --out FILE.csv writes all of them")


def _difference(pair: "PairedDifference") -> str:
    return f"{_points(pair.difference)} ({_points(pair.low)} to {_points(pair.high)})"


def _answer(answer: str | None, probability: float | None, right: bool) -> str:
    text = "nothing (NaN)" if answer is None else _class(answer)
    sure = "" if probability is None else f" {100 * probability:.0f} %"
    return f"[green]{text}[/]{sure}" if right else f"{text}{sure}"


def _class(label: str) -> str:
    from .evaluate.zoo.external_class_names import readable

    return escape(readable(label))


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}"

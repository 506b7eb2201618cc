"""What a person sees of backbones."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.table import Column, Table
from rich.text import Text

from .core.counted import counted
from .core.records import to_json
from .core.terminal import escape
from .show import console, show_json

if TYPE_CHECKING:
    from .models import BackboneInfo


def show_backbones(found: "Sequence[BackboneInfo]", as_json: bool) -> None:
    """One row a backbone, and what is not told of so many."""
    if as_json:
        show_json(to_json(list(found)))
        return
    table = Table(Column("backbone", overflow="fold"))
    columns = {name: [cell(one) for one in found] for name, cell in _CELLS.items()}
    told = {name: cells for name, cells in columns.items() if any(cells)}
    for name in told:
        longest = max(Text.from_markup(cell).cell_len for cell in told[name])
        table.add_column(name, justify="right" if name in _NUMBERS else "left", min_width=longest)
    for one, *cells in zip(found, *told.values(), strict=True):
        table.add_row(escape(one.name), *cells)
    console.print(table)
    for one in found:
        if one.problem is not None:
            console.print(f"[yellow]{escape(one.problem)}[/]")
    _say_how_many(found)


def _say_how_many(found: "Sequence[BackboneInfo]") -> None:
    here = sum(one.weights.here for one in found)
    console.print(f"{counted(len(found), 'backbone')}, the weights of {here:,} on this machine")
    if lists := Counter(name for one in found for name in one.lists):
        console.print(f"of lists: {', '.join(f'{name} {count}' for name, count in lists.items())}")
    if all(one.parameters is None and one.problem is None for one in found):
        console.print("parameters and D are told where fewer are listed")


def _edges(size: tuple[int, int] | None) -> str:
    if size is None:
        return ""
    height, width = size
    return str(height) if height == width else f"{height} x {width}"


_NUMBERS = ("M parameters", "image", "D", "top-1 %")
# A column of which nothing is known of any backbone is left out.
_CELLS: "dict[str, Callable[[BackboneInfo], str]]" = {
    "M parameters": lambda one: "" if one.parameters is None else f"{one.parameters / 1e6:.1f}",
    "image": lambda one: _edges(one.image_size),
    "D": lambda one: "" if one.feature_dim is None else str(one.feature_dim),
    "top-1 %": lambda one: "" if one.top1 is None else f"{one.top1:.1f}",
    "licence": lambda one: escape(one.license or ""),
    "weights": lambda one: f"[green]{one.weights}[/]" if one.weights.here else str(one.weights),
}

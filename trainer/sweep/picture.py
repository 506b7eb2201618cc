"""The picture of a sweep: validation accuracy against every setting that varies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ...core.files import new_file

COLUMNS, LABEL = 3, 24
LOGARITHMIC = {"learning_rate", "inverse_temperature", "m", "batch_size", "hidden"}
COLORS = ("#3b6fb6", "#b5442e", "#4b9560", "#8a5aa8", "#d08a2c", "#4aa3b5", "#c05f93", "#7a6a58", "#7d8590")


def draw_sweep(rows: Sequence[dict[str, Any]], axes: Sequence[str], measure: str, path: Path) -> None:
    """Write a PNG: a panel for each setting that varies, a dot for each head, a line a contender through its best.

    Args:
        rows: The heads, as in ``sweep.csv``.
        axes: The settings that vary.
        measure: The column that is drawn, in per cent.
        path: The PNG to write.
    """
    axes = [name for name in axes if name != "seed"] or ["seed"]
    contenders = list(dict.fromkeys(row["contender"] for row in rows))
    lines, columns = -(-len(axes) // COLUMNS), min(len(axes), COLUMNS)
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=(4 * columns, 3 * lines + 0.5), layout="constrained")
        panels = list(figure.subplots(lines, columns, squeeze=False, sharey=True).flat)
        for panel, name in zip(panels[: len(axes)], axes, strict=True):
            _draw(panel, [row for row in rows if None not in (row[measure], row[name])], name, measure, contenders)
        for panel in panels[len(axes) :]:
            panel.remove()
        figure.supylabel(f"{measure.replace('_', ' ')} in %", fontsize=9)
        handles = [Line2D([], [], color=_color(place)) for place in range(len(contenders))]
        figure.legend(handles, contenders, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        with new_file(path) as temporary:
            figure.savefig(temporary, dpi=110, format="png")


def _draw(panel: Axes, rows: Sequence[dict[str, Any]], name: str, measure: str, contenders: Sequence[str]) -> None:
    numeric = all(isinstance(row[name], int | float) for row in rows)
    values = list(dict.fromkeys(row[name] for row in rows))
    values = sorted(values) if numeric else values
    places = {value: value if numeric else place for place, value in enumerate(values)}
    for place, contender in enumerate(contenders):
        own = [row for row in rows if row["contender"] == contender]
        panel.plot(
            [places[row[name]] for row in own], [row[measure] for row in own], ".", color=_color(place), alpha=0.4
        )
        best = {value: max(row[measure] for row in own if row[name] == value) for value in (row[name] for row in own)}
        reached = sorted((places[value], best[value]) for value in best)
        panel.plot(*zip(*reached, strict=True) if reached else ([], []), "-" if numeric else "_", color=_color(place))
    panel.set_title(name)
    panel.spines[["top", "right"]].set_visible(False)
    _label(panel, name, values, numeric)


def _label(panel: Axes, name: str, values: Sequence[Any], numeric: bool) -> None:
    if numeric and name in LOGARITHMIC:
        panel.set_xscale("log")
        panel.xaxis.set_minor_locator(NullLocator())
    if numeric:
        panel.set_xticks(values, [f"{value:g}" for value in values])
    else:
        panel.set_xticks(range(len(values)), [str(value)[:LABEL] for value in values], rotation=30, ha="right")


def _color(place: int) -> str:
    return COLORS[place % len(COLORS)]

"""The picture of a sweep: validation accuracy against every setting that varies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...models.files import new_file

COLUMNS, LABEL = 3, 24
LOGARITHMIC = {"learning_rate", "inverse_temperature", "m", "batch_size", "hidden"}
DOT, LINE = "#8a94a0", "#b5442e"


def draw_sweep(rows: Sequence[dict[str, Any]], axes: Sequence[str], measure: str, path: Path) -> None:
    """Write a PNG: a panel for each setting that varies, a dot for each head, a line through the best of each value.

    Args:
        rows: The heads, as in ``sweep.csv``.
        axes: The settings that vary.
        measure: The column that is drawn, in per cent.
        path: The PNG to write.
    """
    axes = axes or ["seed"]
    lines = -(-len(axes) // COLUMNS)
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=(4 * min(len(axes), COLUMNS), 3 * lines), layout="constrained")
        panels = figure.subplots(lines, min(len(axes), COLUMNS), squeeze=False, sharey=True).flat
        for panel, name in zip(panels, axes, strict=False):
            _draw(panel, [row for row in rows if row[measure] is not None and row[name] is not None], name, measure)
        for panel in list(panels):
            panel.set_axis_off()
        figure.supylabel(f"{measure.replace('_', ' ')} in %", fontsize=9)
        with new_file(path) as temporary:
            figure.savefig(temporary, dpi=110, format="png")


def _draw(panel: Axes, rows: Sequence[dict[str, Any]], name: str, measure: str) -> None:
    numeric = all(isinstance(row[name], int | float) for row in rows)
    values = list(dict.fromkeys(row[name] for row in rows))
    values = sorted(values) if numeric else values
    places = {value: value if numeric else place for place, value in enumerate(values)}
    panel.plot([places[row[name]] for row in rows], [row[measure] for row in rows], ".", color=DOT, alpha=0.6)
    best = [max(row[measure] for row in rows if row[name] == value) for value in values]
    panel.plot([places[value] for value in values], best, "-" if numeric else "_", color=LINE)
    panel.set_title(name)
    if numeric and name in LOGARITHMIC:
        panel.set_xscale("log")
    if not numeric:
        panel.set_xticks(range(len(values)), [str(value)[:LABEL] for value in values], rotation=30, ha="right")
    panel.spines[["top", "right"]].set_visible(False)

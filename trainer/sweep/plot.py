"""The picture of a sweep: validation accuracy against every setting that varies, and which head won."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from matplotlib.transforms import ScaledTranslation

from ...core.files import new_file
from ...core.printable import printable
from ...metrics.proportions import wilson, wilson_intervals
from .sweep_record import cells
from .tables import HeadRow

COLUMNS, LABEL = 3, 24
LOGARITHMIC = {"learning_rate", "inverse_temperature", "m", "batch_size", "hidden"}
COLORS = ("#3b6fb6", "#b5442e", "#4b9560", "#8a5aa8", "#d08a2c", "#4aa3b5", "#c05f93", "#7a6a58", "#7d8590")
WINNER: dict[str, Any] = {"marker": "*", "markersize": 11, "markerfacecolor": "#f2c230", "markeredgecolor": "#333333"}
KEY = "Dots: all heads. Lines and bars: the best head of each value, with its 95 % Wilson interval."
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": 8, "title_fontsize": 8}
FONT, BOXES = "DejaVu Sans", "Last Resort High-Efficiency"
STYLE: dict[Any, Any] = {"font.size": 9, "text.parse_math": False}


@dataclass(frozen=True)
class _Panel:
    """One setting: ``places`` are the positions of its values."""

    axes: Axes
    name: str
    places: dict[Any, float]
    numeric: bool


def draw_sweep(rows: Sequence[HeadRow], axes: Sequence[str], select: str, winner: int, path: Path) -> None:
    """Write a PNG: a panel for each setting that varies, a dot for each head, a line a group through its best.

    A setting that only tells the groups apart has no panel, as the legend says the same.

    Args:
        rows: The heads, as in ``sweep.csv``.
        axes: The settings that vary.
        select: What the heads were chosen by.
        winner: The row of the head that won.
        path: The PNG to write.
    """
    groups = list(dict.fromkeys(row.group for row in rows))
    varied = [name for name in axes if name != "seed"] or ["seed"]
    names = [name for name in varied if not _is_the_legend(rows, name)]
    legend = bool(names) and len(groups) > 1
    names = names or varied[:1]
    lines, columns = -(-len(names) // COLUMNS), min(len(names), COLUMNS)
    said = "".join(value for row in rows for value in cells(row).values() if isinstance(value, str))
    with mpl.rc_context(STYLE | {"font.family": _fonts(said)}):
        figure = Figure(figsize=(max(4 * columns, 6), 3 * lines + 1.5), layout="constrained")
        panels = list(figure.subplots(lines, columns, squeeze=False, sharey=True).flat)
        for panel, name in zip(panels[: len(names)], names, strict=True):
            _draw(_panel(panel, rows, name), rows, groups, rows[winner])
        for panel in panels[len(names) :]:
            panel.remove()
        figure.suptitle(_title(rows, varied, rows[winner], select, 24 * columns + 24), fontsize=10)
        figure.supylabel(f"validation {select}, %", fontsize=9)
        handles = [Line2D([], [], linestyle="", **WINNER, label="winner")]
        for place, group in enumerate(groups if legend else ()):
            # The blank keeps a name that begins with an underscore, which a legend leaves out.
            handles.append(Line2D([], [], color=_color(place), marker=".", label=" " + _short(group)))
        key = textwrap.fill(KEY, 70 * columns)
        figure.legend(handles=handles, title=key, loc="outside lower center", ncols=2 * columns, **LEGEND)
        with new_file(path) as temporary:
            figure.savefig(temporary, dpi=110, format="png")


def _fonts(text: str) -> list[str]:
    """Fonts that have the letters together: DejaVu, those installed that have what it lacks, and boxes for the rest.

    matplotlib brings both DejaVu and the boxes.
    """
    fonts = {font.name: font.fname for font in reversed(fontManager.ttflist)}
    missing, found = set(map(ord, text)), [FONT, BOXES]
    for name in (FONT, *sorted(fonts.keys() - {FONT, BOXES})):
        if not missing:
            break
        has = missing & get_font(fonts[name]).get_charmap().keys()
        found[1:1] = [name] if has and name != FONT else []
        missing -= has
    return [name for name in found if name in fonts]


def _is_the_legend(rows: Sequence[HeadRow], name: str) -> bool:
    """Whether a group has one value of a setting, and no two have the same."""
    pairs = {(row.group, row.settings[name]) for row in rows}
    groups, values = ({pair[place] for pair in pairs} for place in (0, 1))
    return len(pairs) == len(groups) == len(values)


def _title(rows: Sequence[HeadRow], names: Sequence[str], best: HeadRow, select: str, width: int) -> str:
    settings = ", ".join(f"{name} {_text(best.settings[name])}" for name in names if best.settings[name] is not None)
    score = best.val_score or 0.0
    share = wilson(round(best.val_n * score / 100), best.val_n)
    text = (
        f"Best of {len(rows):,} heads by validation {select}: {best.group} ({settings}), "
        f"{score:.1f} % of {best.val_n:,} rows (95 % {100 * share.low:.1f} to {100 * share.high:.1f})"
    )
    return textwrap.fill(printable(text), width)


def _panel(axes: Axes, rows: Sequence[HeadRow], name: str) -> _Panel:
    values: list[Any] = list(dict.fromkeys(row.settings[name] for row in rows if row.settings[name] is not None))
    numeric = all(isinstance(value, int | float) for value in values)
    values = sorted(values) if numeric else values
    places = {value: float(value) if numeric else float(place) for place, value in enumerate(values)}
    axes.set_title(name, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    if numeric and name in LOGARITHMIC:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if numeric:
        axes.set_xticks(list(places.values()), [_text(value) for value in values])
    else:
        axes.set_xticks(list(places.values()), [_short(value) for value in values], rotation=30, ha="right")
        axes.set_xlim(-0.5, len(values) - 0.5)
    return _Panel(axes, name, places, numeric)


def _draw(panel: _Panel, rows: Sequence[HeadRow], groups: Sequence[str], winner: HeadRow) -> None:
    def place(row: HeadRow) -> float:
        return panel.places[row.settings[panel.name]]

    def score(row: HeadRow) -> float:
        return row.val_score or 0.0

    rows = [row for row in rows if row.val_score is not None and row.settings[panel.name] is not None]
    for number, group in enumerate(groups):
        own = [row for row in rows if row.group == group]
        best = {place(row): row for row in sorted(own, key=score)}
        # Beside one another, so that neither bars nor equal scores cover those of other groups.
        aside = (number - (len(groups) - 1) / 2) * min(5, 30 / len(groups)) / 72
        where = panel.axes.transData + ScaledTranslation(aside, 0, panel.axes.figure.dpi_scale_trans)
        look: dict[str, Any] = {"color": _color(number), "transform": where}
        panel.axes.plot([place(row) for row in own], [score(row) for row in own], ".", alpha=0.4, **look)
        x = sorted(best)
        scores, n = np.array([score(best[at]) for at in x]), np.array([best[at].val_n for at in x])
        panel.axes.plot(x, scores, "o-" if panel.numeric else "o", markersize=3.5, linewidth=1.2, **look)
        low, high = wilson_intervals(scores / 100 * n, n)
        panel.axes.vlines(x, 100 * low, 100 * high, linewidth=1, alpha=0.7, **look)
        panel.axes.update_datalim([*zip(x, 100 * low, strict=True), *zip(x, 100 * high, strict=True)])
        if group == winner.group and winner.settings[panel.name] is not None:
            panel.axes.plot(place(winner), score(winner), linestyle="", zorder=5, transform=where, **WINNER)
    panel.axes.autoscale_view(scalex=panel.numeric)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _short(value: Any) -> str:
    text = printable(str(value))
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


def _color(place: int) -> str:
    return COLORS[place % len(COLORS)]

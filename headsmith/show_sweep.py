"""What a person sees when a sweep ends."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .core.terminal import escape
from .show import console, show_json, show_warnings

if TYPE_CHECKING:
    from .trainer.sweep import Sweep
    from .trainer.sweep.sweep_record import SettingRow, SweepRecord

LISTED = 20
_NOT_SHOWN = {"seed"}
_ANY_WIDTH = 10_000
_SLIM: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
_SHORT = {
    "inverse_temperature": "1/tau",
    "distribution": "distr.",
    "art_lambda": "lambda",
    "top1_mode": "top-1",
    "softmax_over": "over",
    "label_smoothing": "smooth",
    "optimizer": "optim.",
    "learning_rate": "lr",
    "weight_decay": "decay",
    "averaging": "average",
    "batch_size": "batch",
}


def show_sweep(sweep: "Sweep", as_json: bool) -> None:
    """The best settings on validation, the chosen ones on test, and the warnings."""
    from .trainer.sweep.sweep_record import sweep_values

    if as_json:
        show_json(sweep_values(sweep.record))
        return
    record, folder = sweep.record, escape(str(sweep.path))
    axes = [name for name in record.axes if name not in _NOT_SHOWN]
    console.print(
        f"[bold]{folder}[/]  {record.heads} heads in {record.banks} banks, {record.seconds:.1f} s, {record.device}"
    )
    console.print(f"[italic]{_order(record.settings)}; accuracies in %[/]")
    console.print(_settings(record.settings, axes), soft_wrap=False)
    if len(record.settings) > LISTED:
        console.print(f"  ... and {len(record.settings) - LISTED} more in summary.csv")
    console.print("[italic]What validation chose, the winner first, scored on test once; accuracies in %[/]")
    console.print(_groups(record), soft_wrap=False)
    console.print(f"every head: {folder}/sweep.csv  by setting: {folder}/summary.csv  picture: {folder}/sweep.png")
    console.print(f"the winner as a run: {folder}/best")
    show_warnings(record.warnings)


def _order(rows: Sequence["SettingRow"]) -> str:
    """How the settings are ordered, and why one that did not win may have a higher mean than the winner."""
    winner, best = rows[0], max(row.val_score_mean or 0.0 for row in rows if not row.diverged)
    if best <= (winner.val_score_mean or 0.0):
        return "Settings, the best on validation first (*: the winner)"
    return f"Settings, the winner (*) over {winner.seeds} seeds first, then the best"


def _settings(rows: Sequence["SettingRow"], axes: Sequence[str]) -> Table:
    """The best settings, by what varies: a column a setting, or one for all where these are too wide for the screen."""
    losses = {(row.group, row.settings["loss"]) for row in rows}
    by_name = len({group for group, _ in losses}) == len(losses)
    shown = [name for name in axes if not (name == "loss" and by_name)]
    table = _settings_table(rows, {_short(name): [name] for name in shown})
    needed = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).minimum
    if needed <= console.width:
        return table
    return _settings_table(rows, {"setting": shown})


def _settings_table(rows: Sequence["SettingRow"], columns: Mapping[str, Sequence[str]]) -> Table:
    """A row a setting; a column of several settings names each of them, and wraps between them."""
    table = Table(**_SLIM)
    table.add_column("")
    table.add_column("group")
    for heading, names in columns.items():
        table.add_column(heading, no_wrap=len(names) == 1)
    for heading in ("seeds", "val\ntop-1", "val\ntop-5"):
        table.add_column(heading, no_wrap=True)
    for row in rows[:LISTED]:
        cells = [_cell(row, names) for names in columns.values()]
        mark = "*" if row.chosen == "winner" else ""
        spreads = (_spread(row.val_top1_mean, row.val_top1_std), _spread(row.val_top5_mean, row.val_top5_std))
        table.add_row(mark, escape(row.group), *cells, _seeds(row), *spreads)
    return table


def _groups(record: "SweepRecord") -> Table:
    """The chosen setting of every group, on validation and test."""
    rows, table = record.groups, Table(**_SLIM)
    table.add_column("group")
    top1, top5 = any(row.p_top1 is not None for row in rows), any(row.p_top5 is not None for row in rows)
    results = [f"{split}\n{name}" for split in ("val", "test") for name in ("top-1", "top-5")]
    for heading in (*results, *["p\ntop-1"] * top1, *["p\ntop-5"] * top5):
        table.add_column(heading, no_wrap=True)
    if top1 or top5:
        table.caption = (
            f"p: McNemar's exact test of the best seeds, against {escape(str(record.baseline))}, by Holm over all"
        )
    for row in rows:
        spreads = (
            _spread(row.val_top1_mean, row.val_top1_std),
            _spread(row.val_top5_mean, row.val_top5_std),
            _spread(row.test_top1_mean, row.test_top1_std),
            _spread(row.test_top5_mean, row.test_top5_std),
        )
        table.add_row(escape(row.group), *spreads, *[_p(row.p_top1)] * top1, *[_p(row.p_top5)] * top5)
    return table


def _short(name: str) -> str:
    return _SHORT.get(name, name)


def _cell(row: "SettingRow", names: Sequence[str]) -> str:
    """The settings that a row reads."""
    found = {_short(name): _value(name, row.settings[name]) for name in names if row.settings[name] is not None}
    if len(names) == 1:
        return escape("".join(found.values()))
    return escape(" ".join(f"{name}={value}" for name, value in found.items()))


def _value(name: str, value: Any) -> str:
    """A number with few digits; weights as the command line takes them, without blanks, so that none wraps."""
    if name == "p_k":
        return ",".join(weight.removeprefix("0") or "0" for weight in value.split())
    return value if isinstance(value, str) else f"{value:g}"


def _seeds(row: "SettingRow") -> str:
    return f"{row.seeds} ({row.diverged} diverged)" if row.diverged else str(row.seeds)


def _spread(mean: float | None, deviation: float | None) -> str:
    """A mean with its deviation over seeds, where there are several."""
    if mean is None:
        return "n/a"
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f}±{deviation:.1f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}"

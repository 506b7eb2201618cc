"""The tables of a sweep: ``sweep.csv``, a row a head, and ``summary.csv``, a row a setting; accuracies in per cent."""

import csv
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.files import new_file
from ...core.printable import printable
from ...core.spreadsheet_cells import cell
from ..scores import SplitScores
from ..train_config import TrainConfig
from ..unused_settings import unused
from .bank_grouping import Trained
from .comparison import Group, SweepComparison, deviation
from .model_selection import Setting
from .sweep_record import SETTINGS, Cell, SettingRow, cells

ACCURACIES = ("top1", "top5", "score")


@dataclass(frozen=True, kw_only=True)
class HeadRow:
    """A head, a row of ``sweep.csv``; accuracies in per cent.

    Attributes:
        index: Its number, from 0.
        group: Its group.
        settings: By the fields of `TrainConfig`; ``None`` where the head does not read one.
        best_epoch: The epoch that was kept; ``None`` where none had a finite loss.
        epochs_run: How many there were.
        train_loss: Of the best epoch.
        val_n: Validation rows.
        val_loss: The mean loss on them.
        bank: The number of its bank, from 0.
        bank_seconds: What that took.
        diverged: ``true`` or ``false``.

    The others are accuracies; those on the test split only of heads that validation chose.
    """

    index: int
    group: str
    settings: dict[str, Cell]
    best_epoch: int | None
    epochs_run: int
    train_loss: float | None
    val_n: int
    val_loss: float
    val_top1: float | None
    val_top5: float | None
    val_score: float | None
    test_top1: float | None
    test_top5: float | None
    test_score: float | None
    bank: int
    bank_seconds: float
    diverged: str


def head_rows(heads: Sequence[Trained], comparison: SweepComparison) -> list[HeadRow]:
    """A row for each head; test results only for the heads that validation chose."""
    tests = {one.file: group.test_of(one) for group in comparison.groups for one in group.setting.heads}
    return [_head_row(number, head, tests.get(head.file)) for number, head in enumerate(heads)]


def _head_row(number: int, head: Trained, test: SplitScores | None) -> HeadRow:
    return HeadRow(
        index=number,
        group=head.trial.group,
        settings=_settings(head.config),
        best_epoch=None if head.best is None else head.best.epoch,
        epochs_run=len(head.history),
        train_loss=None if head.best is None else head.best.loss,
        val_n=head.val.n,
        val_loss=head.val.loss,
        bank=head.bank,
        bank_seconds=round(head.seconds, 3),
        diverged=str(head.diverged).lower(),
        **{f"val_{name}": _percent(getattr(head.val, name)) for name in ACCURACIES},
        **{f"test_{name}": _percent(getattr(test, name, None)) for name in ACCURACIES},
    )


def setting_rows(settings: Sequence[Setting], comparison: SweepComparison) -> list[SettingRow]:
    """A row for each setting, the winner first, then the best on validation: means and deviations over seeds.

    A setting that was not chosen may have a higher mean than the winner: it has fewer seeds where there are
    ``final_seeds``, and the chance of a few is what these are against.
    """
    chosen = {id(group.setting): group for group in comparison.groups}
    winner = comparison.winner.setting
    ordered = [winner, *(setting for setting in settings if setting is not winner)]
    return [_setting_row(setting, chosen.get(id(setting)), setting is winner) for setting in ordered]


def _setting_row(setting: Setting, group: Group | None, wins: bool) -> SettingRow:
    values = {f"val_{name}": setting.values(name) for name in ACCURACIES}
    values |= {f"test_{name}": group.test_values(name) if group else [] for name in ACCURACIES}
    tests = group.tests if group else {}
    spreads: dict[str, float | None] = {}
    for name, one in values.items():
        mean = statistics.fmean(one) if one else None
        spreads |= {f"{name}_mean": _percent(mean), f"{name}_std": _percent(deviation(one))}
    return SettingRow(
        group=setting.group,
        settings={name: value for name, value in _settings(setting.best.config).items() if name != "seed"},
        seeds=len(setting.heads),
        diverged=sum(head.diverged for head in setting.heads),
        chosen="winner" if wins else "group" if group else "",
        p_top1=tests["top1"].p_holm if "top1" in tests else None,
        p_top5=tests["top5"].p_holm if "top5" in tests else None,
        **spreads,
    )


def _settings(config: TrainConfig) -> dict[str, Cell]:
    """Settings as cells, empty for what the head does not read."""
    skipped = unused(config)
    return {name: None if name in skipped else as_text(getattr(config, name)) for name in SETTINGS}


def as_text(value: Any) -> Any:
    """A setting as a table shows it: a list as numbers between blanks, truth as YAML writes it."""
    if isinstance(value, tuple):
        return " ".join(f"{one:g}" for one in value)
    return str(value).lower() if isinstance(value, bool) else value


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 4)


def write_csv(path: Path, rows: Sequence[HeadRow] | Sequence[SettingRow]) -> None:
    """Write rows, atomically; None is an empty cell."""
    found = [cells(row) for row in rows]
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: cell(printable(value) if isinstance(value, str) else value) for name, value in row.items()}
            for row in found
        )


def varying(settings: Sequence[Mapping[str, Cell]]) -> list[str]:
    """The settings of which heads that read them have several values, in the order of their fields."""
    names = [name for name in SETTINGS if name not in followers(settings)]
    return [name for name in names if len({one[name] for one in settings} - {None}) > 1]


def followers(settings: Sequence[Mapping[str, Any]]) -> set[str]:
    """Those of epochs and patience that have one value for each optimiser and size of batch, as their defaults do."""
    return {name for name in ("epochs", "patience") if all(len(one) == 1 for one in _by_steps(settings, name).values())}


def _by_steps(settings: Sequence[Mapping[str, Any]], name: str) -> dict[tuple[Any, Any], set[Any]]:
    values: dict[tuple[Any, Any], set[Any]] = {}
    for one in settings:
        values.setdefault((one["optimizer"], one["batch_size"]), set()).add(one[name])
    return values

"""The tables of a sweep: ``sweep.csv``, a row a head, and ``summary.csv``, a row a setting; accuracies in per cent."""

import csv
import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.cells import cell
from ...core.files import new_file
from ...core.printable import printable
from ..config import TrainConfig
from ..unused_settings import unread
from .bank_grouping import Trained
from .comparison import Group, SweepComparison, deviation
from .model_selection import Setting

ACCURACIES = ("top1", "top5", "score")
FIELDS = tuple(field.name for field in dataclasses.fields(TrainConfig))


def head_rows(heads: Sequence[Trained], contest: SweepComparison) -> list[dict[str, Any]]:
    """A row for each head; test results only for the heads that validation chose."""
    tests = {one.file: contender.test_of(one) for contender in contest.contenders for one in contender.setting.heads}
    return [_head_row(number, head, tests.get(head.file, {})) for number, head in enumerate(heads)]


def _head_row(number: int, head: Trained, test: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": number,
        "contender": head.point.contender,
        **_settings(head.config),
        "best_epoch": head.best.get("epoch"),
        "epochs_run": len(head.history),
        "train_loss": head.best.get("loss"),
        "val_n": head.val["n"],
        "val_loss": head.val["loss"],
        **{f"val_{name}": _percent(head.val[name]) for name in ACCURACIES},
        **{f"test_{name}": _percent(test.get(name)) for name in ACCURACIES},
        "bank": head.bank,
        "bank_seconds": round(head.seconds, 3),
        "diverged": str(head.diverged).lower(),
    }


def setting_rows(settings: Sequence[Setting], contest: SweepComparison) -> list[dict[str, Any]]:
    """A row for each setting, the winner first, then the best on validation: means and deviations over seeds.

    A setting that was not chosen may have a higher mean than the winner: it has fewer seeds where there are
    ``final_seeds``, and the chance of a few is what these are against.
    """
    chosen = {id(contender.setting): contender for contender in contest.contenders}
    winner = contest.winner.setting
    ordered = [winner, *(setting for setting in settings if setting is not winner)]
    return [_setting_row(setting, chosen.get(id(setting)), setting is winner) for setting in ordered]


def _setting_row(setting: Setting, contender: Group | None, wins: bool) -> dict[str, Any]:
    row = {
        "contender": setting.contender,
        **{name: value for name, value in _settings(setting.best.config).items() if name != "seed"},
        "seeds": len(setting.heads),
        "diverged": sum(head.diverged for head in setting.heads),
        "chosen": "winner" if wins else "contender" if contender else "",
    }
    for name in ACCURACIES:
        row |= _spread(f"val_{name}", setting.values(name))
    for name in ACCURACIES:
        row |= _spread(f"test_{name}", contender.test_values(name) if contender else [])
    tests = contender.tests if contender else {}
    return row | {f"p_{name}": tests[name]["p_holm"] if name in tests else None for name in ("top1", "top5")}


def _settings(config: TrainConfig) -> dict[str, Any]:
    """Settings as cells, empty for what the head does not read."""
    skipped = unread(config)
    return {name: None if name in skipped else as_text(getattr(config, name)) for name in FIELDS}


def as_text(value: Any) -> Any:
    """A setting as a table shows it: a list as numbers between blanks, truth as YAML writes it."""
    if isinstance(value, tuple):
        return " ".join(f"{one:g}" for one in value)
    return str(value).lower() if isinstance(value, bool) else value


def _spread(name: str, values: Sequence[float]) -> dict[str, Any]:
    mean = statistics.fmean(values) if values else None
    return {f"{name}_mean": _percent(mean), f"{name}_std": _percent(deviation(values))}


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 4)


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with the same keys, atomically; None is an empty cell."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: cell(printable(value) if isinstance(value, str) else value) for name, value in row.items()}
            for row in rows
        )


def varying(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The settings of which rows that read them have several values, in the order of their fields."""
    names = [name for name in FIELDS if name not in followers(rows)]
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def followers(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Those of epochs and patience that have one value for each optimiser and size of batch, as their defaults do."""
    return {
        name for name in ("epochs", "patience") if all(len(values) == 1 for values in _by_steps(rows, name).values())
    }


def _by_steps(rows: Sequence[Mapping[str, Any]], name: str) -> dict[tuple[Any, Any], set[Any]]:
    values: dict[tuple[Any, Any], set[Any]] = {}
    for row in rows:
        values.setdefault((row["optimizer"], row["batch_size"]), set()).add(row[name])
    return values

"""``leaderboard.csv`` and ``leaderboard.md``: a row a backbone and precision, timm's columns first."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.files import new_file
from ...core.printable import printable
from ...core.spreadsheet_cells import cell
from ...metrics.proportions import Share
from ..results.table import TIMM
from .benchmark_record import BenchmarkRecord, BenchmarkRow, ProviderFigures

CSV, MARKDOWN = "leaderboard.csv", "leaderboard.md"
COLUMNS = (
    *TIMM,
    *("kind", "state", "backbone", "sweep", "precision", "loss", "feature_dim"),
    *("val_top1", "val_top5", "top1_low", "top1_high", "n", "tied", "p_holm", "difference", "within"),
    *("latency_p10_ms", "latency_p50_ms", "latency_p90_ms", "images_per_second", "moved", "memory_mb", "file_mb"),
    *("extract_seconds", "sweep_seconds", "export_seconds", "promise", "bundle", "warnings", "notes", "reason"),
)
_STAGES = ("extract", "sweep", "export")


def cells(row: BenchmarkRow) -> dict[str, Any]:
    """A row of the table: shares and differences in per cent, parameters in millions, sizes in MB."""
    top1, top5, latency = row.top1, row.top5, row.latency
    found: dict[str, Any] = {
        "model": row.name,
        "img_size": row.image_size,
        "top1": _share(top1),
        "top1_err": None if top1 is None else round(100 - 100 * top1.value, 4),
        "top5": _share(top5),
        "top5_err": None if top5 is None else round(100 - 100 * top5.value, 4),
        "param_count": None if row.parameters is None else round(row.parameters / 1e6, 2),
        "crop_pct": None if row.crop_pct is None else round(row.crop_pct, 3),
        "interpolation": row.interpolation,
        "val_top1": _share(row.val_top1),
        "val_top5": _share(row.val_top5),
        "top1_low": None if top1 is None else round(100 * top1.low, 4),
        "top1_high": None if top1 is None else round(100 * top1.high, 4),
        "n": None if top1 is None else top1.n,
        "tied": row.marked,
        "p_holm": None if row.p is None else float(f"{row.p:.6g}"),
        "difference": None if row.difference is None else round(100 * row.difference, 4),
        "warnings": "; ".join(map(str, row.warnings)),
        "notes": "; ".join(row.notes),
    }
    if latency is not None:
        found |= {f"latency_{name}_ms": round(getattr(latency, name), 3) for name in ("p10", "p50", "p90")}
    found |= {f"{stage}_seconds": row.seconds.get(stage) for stage in _STAGES}
    for name in ("images_per_second", "memory_mb", "file_mb"):
        value = getattr(row, name)
        found[name] = None if value is None else round(value, 2)
    found |= {name: getattr(row, name) for name in COLUMNS if name not in found and hasattr(row, name)}
    for provider, other in row.providers.items():
        found |= {
            f"latency_p50_ms@{provider}": None if other.latency is None else round(other.latency.p50, 3),
            f"images_per_second@{provider}": other.images_per_second and round(other.images_per_second, 2),
            f"top1@{provider}": _share(other.top1),
            f"flips@{provider}": other.flips,
            f"moved@{provider}": other.moved,
            f"reason@{provider}": other.error,
        }
    return found


def columns(rows: Sequence[BenchmarkRow]) -> list[str]:
    """The columns of a table, those of further providers last."""
    return list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in cells(row))]))


def write_csv(path: Path, rows: Sequence[BenchmarkRow]) -> None:
    """Write ``leaderboard.csv``."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in cells(row).items()} for row in rows)


def write_markdown(path: Path, record: BenchmarkRecord) -> None:
    """Write ``leaderboard.md``: what to deploy, the table, and what has no figures with the reasons."""
    with new_file(path) as temporary:
        temporary.write_text(_markdown(record), encoding="utf-8")


def _markdown(record: BenchmarkRecord) -> str:
    splits = ", ".join(f"{name} {count:,}" for name, count in record.splits.items())
    further = list(dict.fromkeys(provider for row in record.rows for provider in row.providers))
    headings = ["model", "", "top-1 % (95 %)", "top-5 %", "validation %", "ms", "images/s", "MB", "memory MB", "head"]
    headings += [f"{figure}, {provider}" for provider in further for figure in ("ms", "moved")]
    lines = [
        "# Which classifier to deploy",
        "",
        f"{record.sentence[:1].upper()}{record.sentence[1:]}.",
        "",
        f"{len(record.class_names):,} classes; images: {splits}. Validation chose everything; top-1 and top-5 are of "
        f"the test split under {record.provider}. `=`: the winner, and those that McNemar's exact test, by Holm, "
        "cannot tell from it.",
        "",
        _line(headings),
        _line(["---"] * len(headings)),
        *(_line(_shown(row, further)) for row in record.rows if row.top1 is not None),
    ]
    without = [row for row in record.rows if row.top1 is None]
    if without:
        lines += ["", "| without figures | | why |", "| --- | --- | --- |"]
        lines += [_line([row.name, row.state, row.why_none]) for row in without]
    lines += [f"\nwarning ({one.code}): {one.message}" for one in record.warnings]
    return printable("\n".join(lines), keep="\n") + "\n"


def _shown(row: BenchmarkRow, further: Sequence[str]) -> list[str]:
    top1, latency = row.top1, row.latency
    low_high = "" if top1 is None else f"{100 * top1.value:.1f} ({100 * top1.low:.1f}-{100 * top1.high:.1f})"
    others = [row.providers.get(provider) for provider in further]
    return [
        row.name,
        "=" if row.marked else "",
        low_high,
        _percent(row.top5),
        _percent(row.val_top1),
        "" if latency is None else str(latency),
        "" if row.images_per_second is None else f"{row.images_per_second:,.0f}",
        "" if row.file_mb is None else f"{row.file_mb:.1f}",
        "" if row.memory_mb is None else f"{row.memory_mb:.0f}",
        row.loss,
        *(text for one in others for text in _elsewhere(one)),
    ]


def _elsewhere(found: ProviderFigures | None) -> tuple[str, str]:
    """Latency under a further provider, and how far its logits are from the CPU's; why there are none."""
    if found is None or found.error:
        return ("" if found is None else found.error), ""
    return str(found.latency or ""), "" if found.moved is None else f"{found.moved:.2g}"


def _line(parts: Sequence[str]) -> str:
    return f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |"


def _share(share: Share | None) -> float | None:
    return None if share is None else round(100 * share.value, 4)


def _percent(share: Share | None) -> str:
    return "" if share is None else f"{100 * share.value:.1f}"

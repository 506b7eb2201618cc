"""``results.csv``: a row a classifier, timm's columns first."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import DamagedFileError
from ...core.files import new_file
from ...core.spreadsheet_cells import cell, text_of
from ...core.text_file import read_text
from ..metrics import Summary
from ..result import EvalResult, FailedModel

TIMM = ("model", "img_size", "top1", "top1_err", "top5", "top5_err", "param_count", "crop_pct", "interpolation")
COLUMNS = (
    *TIMM,
    *("n", "top1_low", "top1_high", "top5_low", "top5_high", "rank", "tied", "p_holm"),
    *("mean_recall", "nll", "brier", "ece", "ece_mass", "aurc", "num_classes"),
    *("images_per_second", "images_per_second_overall", "decoded_per_second"),
    *("latency_p10_ms", "latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "load_seconds", "first_run_seconds"),
    *(
        "busy_cpus",
        "memory_mb",
        "gpu_mb",
        "file_mb",
        "batch_size",
        "provider",
        "nodes_elsewhere",
        "threads",
        "runtime",
        "device",
    ),
    *("published_top1", "published_top5", "published_by", "minus_published", "within"),
    *("cpu_difference", "cpu_flips", "cpu_compared"),
    *("against", "flips", "ties", "not_finite", "unreadable", "duplicates", "warnings"),
    *("file", "model_sha256", "data", "data_sha256", "labels_sha256", "preprocessing_sha256"),
    *("versions", "created", "source", "key", "error"),
)
OLD = {"flags": "warnings"}  # columns that older versions called otherwise
Cell = int | float | str | None
Row = dict[str, Cell]


def result_row(result: EvalResult) -> Row:
    """A row of the table: shares in per cent, parameters in millions, sizes in MB; ``None`` where nothing is known.

    ``rank``, ``tied`` and ``p_holm`` depend on the other rows and are not here.
    """
    setup, speed = result.setup, result.speed
    percent = figures(result.summary)
    row: Row = {"model": result.model, **percent}
    row |= {f"{name}_err": _rounded(_left(percent.get(name)), 4) for name in ("top1", "top5")}
    row |= {
        "img_size": setup.image_size,
        "param_count": None if setup.parameters is None else round(setup.parameters / 1e6, 2),
        "crop_pct": None if setup.crop_pct is None else round(setup.crop_pct, 3),
        "interpolation": setup.interpolation,
        "n": result.n,
        "num_classes": result.summary.num_logits,
        "memory_mb": None if speed.memory_bytes is None else round(speed.memory_bytes / 1e6, 1),
        "busy_cpus": _rounded(speed.busy, 2),
        "gpu_mb": None if speed.gpu_bytes is None else round(speed.gpu_bytes / 1e6, 1),
        "file_mb": round(setup.bytes / 1e6, 2),
        "nodes_elsewhere": sum(setup.nodes.values()) - setup.nodes.get(setup.provider, 0),
        "not_finite": result.not_finite,
        "unreadable": len(result.unreadable),
        "duplicates": result.duplicates,
        "warnings": "; ".join(map(str, result.warnings)),
        "versions": " ".join(f"{name}={version}" for name, version in setup.versions.items() if name != "platform"),
        "source": result.source,
        "key": result.key,
    }
    for name in ("p10", "p50", "p90", "p99") if speed.latency else ():
        row[f"latency_{name}_ms"] = round(getattr(speed.latency, name), 3)
    for size, rate in speed.throughput.items():
        row[f"images_per_second_at_{size}"] = round(rate, 2)
    for name in ("images_per_second", "images_per_second_overall", "decoded_per_second"):
        row[name] = _rounded(getattr(speed, name), 2)
    for name in ("load_seconds", "first_run_seconds"):
        row[name] = round(getattr(speed, name), 4)
    for name in COLUMNS:
        if hasattr(setup, name) and name not in row:
            row[name] = getattr(setup, name)
    if result.subset is not None:
        row |= figures(result.subset)
    if result.verdict is not None:
        row |= {
            "published_top1": _share(result.verdict.top1),
            "published_top5": _share(result.verdict.top5),
            "published_by": result.verdict.source,
            "minus_published": _share(result.verdict.difference),
            "within": result.verdict.within,
        }
    if result.beside_cpu is not None:
        on_cpu = result.beside_cpu
        row |= {"cpu_difference": float(f"{on_cpu.largest:.6g}"), "cpu_flips": on_cpu.flips, "cpu_compared": on_cpu.n}
    if result.against is not None:
        found = result.against
        row |= {"against": found.runtime, "flips": found.different, "ties": found.tie}
    return row


def failed_row(failed: FailedModel) -> Row:
    """The row of a classifier that could not be measured."""
    return {"model": failed.model, "source": failed.source, "key": failed.key, "error": failed.error}


def read_table(path: Path) -> list[dict[str, str]]:
    """All rows, as text; none where there is no such file.

    Raises:
        DamagedFileError: Not a table of results.
    """
    if not path.exists():
        return []
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        rows, columns = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        raise DamagedFileError(
            f"{path}: after line {reader.line_num}: not a table of results ({error}); move it"
        ) from None
    if "model" not in columns:
        raise DamagedFileError(f"{path}: not a table of results (no column `model`); move it")
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise DamagedFileError(f"{path}: row {number}: more or fewer than {len(columns)} cells found; move it")
    return [{OLD.get(name, name): text_of(text) for name, text in row.items()} for row in rows]


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write all rows at once, flushed to disk.

    Columns that this version does not know, such as those of another version, follow the known ones.
    """
    further = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *further], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def _left(percent: float | None) -> float | None:
    return None if percent is None else 100 - percent


def figures(summary: Summary) -> dict[str, float | None]:
    """The columns of a summary; shares are in per cent."""
    return {
        name: _share(value) if name.startswith(("top", "mean_recall")) else _rounded(value, 6)
        for name, value in summary.columns().items()
    }


def _share(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 4)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)

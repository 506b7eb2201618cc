"""What became of each file of a benchmark before it was measured: a JSON file a row, written when it is known."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.records import read_values, write_record
from ...core.typed_json import structured
from ...metrics.proportions import Share

FORMAT, FORMAT_VERSION = "headsmith.benchmark-row", 1
ROWS = "rows"
DONE, FAILED, PRUNED = "done", "failed", "pruned"
_AGAIN = "delete it and run the benchmark again"


@dataclass(frozen=True, kw_only=True)
class TrainedRow:
    """A backbone with its head at one precision: exported and proved, failed, or left out.

    Attributes:
        format: ``headsmith.benchmark-row``.
        format_version: 1.
        key: A hash of all that decides it; see `headsmith.evaluate.benchmark.plan.key_of`.
        name: Its name in tables, and of its bundle's folder.
        backbone: See `headsmith.extract`.
        image_size: Crop edge in pixels that was asked for; ``None`` is the backbone's own.
        sweep: The preset of the sweep.
        precision: Of the file.
        features: The name of its features' folder.
        trained: The name of its sweep's folder.
        state: ``done``, ``failed`` or ``pruned``.
        reason: Why it failed or was left out; empty where it is done.
        stage: Where it failed.
        feature_dim: D.
        loss: Of the head that validation chose.
        settings: Of that head, those that its loss reads.
        val_top1: Of the file's answers on validation, which all choices are made by.
        val_top5: The same of five answers; ``None`` with fewer classes.
        seconds: What each stage took.
        batch_size: Images a forward pass, the number that memory did for.
        promise: The score of the budget; ``None`` without one.
        notes: Facts of how it was made, in words.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    key: str
    name: str
    backbone: str
    image_size: int | None
    sweep: str
    precision: str
    features: str
    trained: str
    state: str
    reason: str = ""
    stage: str = ""
    feature_dim: int | None = None
    loss: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    val_top1: Share | None = None
    val_top5: Share | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    batch_size: int | None = None
    promise: float | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse what is neither done nor left out with a reason, as a damaged file may say."""
        if self.state not in (DONE, FAILED, PRUNED):
            raise ValueError(f"state: found {self.state!r}, expected one of {DONE}, {FAILED}, {PRUNED}")
        if (self.state == DONE) != (self.val_top1 is not None) or (self.state == DONE) == bool(self.reason):
            raise ValueError("val_top1: expected a share of a row that is done, a reason of any other")


def row_path(out: Path, name: str) -> Path:
    """The file of a row."""
    return out / ROWS / f"{name}.json"


def write_row(out: Path, row: TrainedRow) -> None:
    """Write a row, in place of an older one of its name."""
    write_record(row_path(out, row.name), row)


def read_row(path: Path) -> TrainedRow:
    """Read a row.

    Raises:
        InputError: No such file, or one of another format or version.
        DamagedFileError: A field is missing, unknown or of another kind.
    """
    values = read_values(path, format=FORMAT, version=FORMAT_VERSION, advice=_AGAIN)
    found = structured(values, TrainedRow, str(path), advice=_AGAIN)
    if found.name != path.stem:
        raise InputError(f"{path}: name is {found.name!r}, expected {path.stem!r}; {_AGAIN}")
    return found


def read_rows(out: Path) -> list[TrainedRow]:
    """All rows of a benchmark's folder, by name."""
    return [read_row(path) for path in sorted((out / ROWS).glob("[!.]*.json"))]

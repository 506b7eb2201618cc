"""What a sweep says of itself: ``sweep.json``."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ...core.coded_warnings import CodedWarning
from ...core.files import write_json
from ...core.json_values import JsonObject
from ...core.records import HASHES, check_hashes, read_values, to_json, with_hashes
from ...core.typed_json import structured
from ...metrics.paired import PairedCounts
from ..scores import SplitScores
from ..train_config import TrainConfig

RECORD = "sweep.json"
FORMAT, FORMAT_VERSION = "headsmith.sweep", 1
SETTINGS = tuple(field.name for field in fields(TrainConfig))
Cell = int | str | float | None


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """A setting over its seeds, a row of ``summary.csv``; accuracies in per cent.

    Attributes:
        group: Its group.
        settings: What its heads share, by the fields of `TrainConfig`, less the seed; ``None`` where it is not read.
        seeds: How many heads.
        diverged: How many of them diverged.
        chosen: ``winner``, ``group`` for the best of another group, or nothing.
        p_top1: McNemar's p against the baseline on the test split, by Holm; ``None`` where nothing was tested.
        p_top5: The same of top-5.

    The others are means and sample standard deviations over the heads that did not diverge; ``None`` where there are
    none, or one head only.
    """

    group: str
    settings: dict[str, Cell]
    seeds: int
    diverged: int
    chosen: Literal["winner", "group", ""]
    val_top1_mean: float | None
    val_top1_std: float | None
    val_top5_mean: float | None
    val_top5_std: float | None
    val_score_mean: float | None
    val_score_std: float | None
    test_top1_mean: float | None
    test_top1_std: float | None
    test_top5_mean: float | None
    test_top5_std: float | None
    test_score_mean: float | None
    test_score_std: float | None
    p_top1: float | None
    p_top5: float | None


@dataclass(frozen=True)
class PairedTest(PairedCounts):
    """McNemar's exact test of a group's head, the first, and the baseline's on the same rows.

    Attributes:
        p_holm: The p-value by Holm over all tests of a sweep; 1 before that.
    """

    p_holm: float = 1.0


@dataclass(frozen=True)
class PairedTests:
    """All tests of a sweep.

    Attributes:
        split: ``test``; ``None`` without that split.
        tests: By group, then by ``top1`` and ``top5``.
    """

    split: str | None
    tests: dict[str, dict[str, PairedTest]]


@dataclass(frozen=True)
class Winner:
    """The head that validation chose.

    Attributes:
        group: Its group.
        config: Its settings.
        train: Its scores on (at most 50,000) training rows.
        val: On validation.
        test: On the test split; ``None`` without that.
    """

    group: str
    config: TrainConfig
    train: SplitScores
    val: SplitScores
    test: SplitScores | None


@dataclass(frozen=True)
class SweptFeatures:
    """Folder and fingerprint of the feature set."""

    path: str
    fingerprint: str


@dataclass(frozen=True)
class UsedPreset:
    """Name and source of the published settings."""

    name: str
    source: str


@dataclass(frozen=True, kw_only=True)
class SweepRecord:
    """A sweep, as ``sweep.json`` holds it.

    Attributes:
        format: ``headsmith.sweep``.
        format_version: 1.
        features: What the heads were fitted to.
        request: SHA-256 of what decides the result.
        preset: The published settings that the sweep builds on.
        select: What validation chose by.
        heads: How many heads.
        banks: How many passes over the data they took.
        axes: The settings that vary.
        winner: The head that validation chose.
        baseline: The group of plain cross-entropy; ``None`` where there is none.
        groups: The best setting of each group, the winner's first.
        paired: Tests of the best heads against the baseline's.
        warnings: What makes the result doubtful.
        settings: All settings, the best first.
        seconds: What the sweep took, less what was trained before an interruption.
        device: What computed, in words.
        versions: Of headsmith, Python and the packages that computed.
        created: When, in UTC (ISO 8601).
        files_sha256: Hashes of the other files.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    features: SweptFeatures
    request: str
    preset: UsedPreset | None
    select: str | list[float]
    heads: int
    banks: int
    axes: list[str]
    winner: Winner
    baseline: str | None
    groups: list[SettingRow]
    paired: PairedTests
    warnings: list[CodedWarning]
    settings: list[SettingRow]
    seconds: float
    device: str
    versions: dict[str, str]
    created: str
    files_sha256: dict[str, str]


def cells(row: Any) -> dict[str, Cell]:
    """A row of a table, its settings among the other columns."""
    found: dict[str, Cell] = {}
    for name, value in to_json(row).items():
        found |= value if name == "settings" else {name: value}
    return found


def sweep_values(record: SweepRecord) -> JsonObject:
    """What ``sweep.json`` holds: its rows are those of ``summary.csv``, and hashes of the fields."""
    rows = {"groups": record.groups, "settings": record.settings}
    values: JsonObject = to_json(record)
    return with_hashes(values | {name: [cells(row) for row in one] for name, one in rows.items()})


def write_sweep_record(path: Path, record: SweepRecord) -> None:
    """Write a record."""
    write_json(path, sweep_values(record))


def read_sweep_record(path: Path) -> SweepRecord:
    """Read a sweep's record, of this version or an older one.

    Raises:
        InputError: No such file, or one of another format or a later version.
        DamagedFileError: A field is missing, unknown, of another kind, or was edited, or the hashes by which that is
            found are missing; an older record had none.
    """
    again = "sweep again"
    values = read_values(path, format=FORMAT, version=FORMAT_VERSION, advice=again)
    own = {name: value for name, value in values.items() if name != HASHES}
    found = structured(_nested(_upgraded(own)), SweepRecord, str(path), advice=again)
    if "contenders" not in values:
        check_hashes(values, str(path), writer="the sweep", advice=again)
    return found


def _nested(values: JsonObject) -> JsonObject:
    """The values with the settings of each row apart."""

    def nested(row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        own = {name: row.get(name) for name in SETTINGS if name != "seed"}
        return {name: value for name, value in row.items() if name not in SETTINGS} | {"settings": own}

    rows = {name: values[name] for name in ("groups", "settings") if isinstance(values.get(name), list)}
    return values | {name: [nested(row) for row in one] for name, one in rows.items()}


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of an older record, in which a group was a contender, as this version writes them."""
    if "contenders" not in values:
        return values
    new = {"warnings" if name == "findings" else name: value for name, value in values.items() if name != "contenders"}
    new |= {"groups": values["contenders"], "winner": _of_group(values.get("winner"))}
    if isinstance(new["winner"], dict):
        new["winner"]["test"] = new["winner"].get("test") or None
    for name in ("groups", "settings"):
        if isinstance(new.get(name), list):
            new[name] = [_of_group(row) for row in new[name]]
    return new


def _of_group(row: Any) -> Any:
    if not isinstance(row, dict):
        return row
    new = {"group" if name == "contender" else name: value for name, value in row.items()}
    return new | {"chosen": "group"} if new.get("chosen") == "contender" else new

"""From shards to a feature set: assembled aside, then put in place in one step."""

import os
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from ....core.coded_warnings import CodedWarning
from ....core.environment import versions
from ....core.files import write_json
from ....core.listed import listed
from ....core.records import write_record
from ....models.backbone_record import BackboneRecord
from ..copies import find_copies
from ..feature_writer import FURTHER, split_file
from ..images.image_set import ImageSet
from ..images.samples import SPLITS
from ..images.spellings import spelt_alike
from ..manifest import MANIFEST, FeatureSetManifest, FeatureStatistics
from ..split_checksums import pictures_sha256, rows_sha256
from .redivision import check_left, redivide
from .request import Request
from .shard_rows import SplitRows
from .shards import Shard, ShardRecord, ShardRows, read_shard


def assemble(partial: Path, shards: list[Shard], images: ImageSet, backbone: BackboneRecord, request: Request) -> Path:
    """Build the feature set inside the folder of the unfinished extraction.

    Args:
        partial: The folder, with every shard in it.
        shards: Its shards.
        images: What they were extracted from.
        backbone: The backbone's record.
        request: The parts that decide the features.

    Returns:
        The folder of the finished feature set, to be put in place with `publish`.

    Raises:
        InputError: Unreadable images left a split empty or a class without training images.
    """
    found = {shard.name: read_shard(partial / shard.name, shard, images, request) for shard in shards}
    tables = {split: _with_views(_join(shards, found, split), shards, split) for split in SPLITS}
    records = [rows.record for rows in found.values()]
    unreadable = [one for record in records for one in record.unreadable]
    images, moved, warnings = redivide(images, tables, [one.id for one in unreadable])
    rows = {split: SplitRows.of(split, tables, moved) for split in SPLITS}
    check_left({split: one.labels for split, one in rows.items()}, images, unreadable)
    folder = partial / "assembled"
    shutil.rmtree(folder, ignore_errors=True)
    for split, one in rows.items():
        _write_split(folder / split, one, images.class_names)
    write_json(folder / "dataset_dict.json", {"splits": list(SPLITS)})
    write_record(folder / MANIFEST, _manifest(rows, records, images, backbone, request, warnings))
    return folder


def publish(folder: Path, partial: Path, out: Path) -> None:
    """Put a finished folder in place of ``out`` and remove the rest of the extraction.

    A replaced feature set is moved aside first and deleted last.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    if out.exists():
        shutil.rmtree(partial / "replaced", ignore_errors=True)
        out.rename(partial / "replaced")
    folder.rename(out)
    rest = partial.with_name(f".{partial.name}.done")
    shutil.rmtree(rest, ignore_errors=True)
    partial.rename(rest)  # in one step, so that no other process finds parts of it missing
    shutil.rmtree(rest)


def _join(shards: list[Shard], found: dict[str, ShardRows], split: str) -> pa.Table:
    tables = [found[shard.name].table.replace_schema_metadata() for shard in shards if shard.split == split]
    return pa.concat_tables(tables)


def _with_views(table: pa.Table, shards: list[Shard], split: str) -> pa.Table:
    """Add the number of its view to each row, where training images have several."""
    views = {shard.split: shard.views for shard in shards}
    if max(views.values()) == 1:
        return table
    numbers = np.arange(len(table), dtype=np.int64) % views[split]
    return table.append_column("view", pa.array(numbers))


def _write_split(folder: Path, rows: SplitRows, class_names: list[str]) -> None:
    """Copy the rows from the mapped shards, one after the other."""
    further = {name: rows.column(name) for name in FURTHER if name in rows.names}
    with split_file(folder, rows.ids, rows.labels, class_names, rows.width, rows.dtype, further) as sink:
        for block in rows.blocks():
            sink.append(block)


def _manifest(
    tables: dict[str, SplitRows],
    shards: list[ShardRecord],
    images: ImageSet,
    backbone: BackboneRecord,
    request: Request,
    moved: list[CodedWarning],
) -> FeatureSetManifest:
    shown = {split: one.shown() for split, one in tables.items()}
    copies = find_copies(shown, images.class_names)
    unreadable = [one for shard in shards for one in shard.unreadable]
    return FeatureSetManifest(
        fingerprint=request.fingerprint,
        request=request,
        backbone=backbone,
        source=images.source,
        source_fingerprint=request.source,
        class_names=images.class_names,
        splits={split: len(one.labels) for split, one in tables.items()},
        split_rule=images.split_rule,
        warnings=[
            *copies.warnings({split: len(one.labels) for split, one in shown.items()}),
            *spelt_alike(images.class_names),
            *moved,
            *_missing_classes(tables, images),
        ],
        rows_sha256={split: rows_sha256(one.ids, one.labels) for split, one in tables.items()},
        pictures_sha256={split: pictures_sha256(one.column("picture")) for split, one in tables.items()},
        copies=copies,
        feature_dim=backbone.feature_dim,
        dtype=tables["train"].dtype,
        amp=request.amp,
        views=request.views,
        l2_normalised=False,
        unreadable=unreadable,
        remarks=dict(sum((Counter(shard.remarks) for shard in shards), Counter[str]()).most_common()),
        statistics=_statistics(list(tables.values()), elapsed(shards), len(images) - len(unreadable)),
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _missing_classes(rows: dict[str, SplitRows], images: ImageSet) -> list[CodedWarning]:
    """A warning for each carved split that lacks classes of which train has images."""
    known = np.unique(rows["train"].labels)
    lacking = {split: np.setdiff1d(known, rows[split].labels) for split in images.carved}
    return [
        CodedWarning(
            "missing-class",
            f"{split} has no image of class {listed([repr(images.class_names[label]) for label in labels])}: too few "
            "different ones, or unreadable",
        )
        for split, labels in lacking.items()
        if labels.size
    ]


def elapsed(shards: list[ShardRecord]) -> float:
    """Seconds in which at least one process worked: what several did at once counts once, pauses do not."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted((shard.began, shard.began + shard.seconds) for shard in shards):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return max(total, 1e-9)


def _statistics(tables: list[SplitRows], seconds: float, images: int) -> FeatureStatistics:
    """Of the features as they are stored, and of so many images in so many seconds."""
    low, high, norms, rows = float("inf"), float("-inf"), 0.0, 0
    for block in (
        torch.from_numpy(block.astype(np.float32)) for table in tables for block in table.blocks() if block.size
    ):
        low, high = min(low, float(block.min())), max(high, float(block.max()))
        norms += float(block.norm(dim=1).double().sum())
        rows += len(block)
    return FeatureStatistics(low, high, norms / rows, round(seconds, 3), round(images / seconds, 1))

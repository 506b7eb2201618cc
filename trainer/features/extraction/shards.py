"""Extracted features on their way: one Arrow file for some hundred images, each there whole or not at all."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ....core.errors import InputError
from ....core.files import new_file, parse_json
from ....core.records import read_record, to_json, write_record
from ....core.typed_json import structured
from ..arrow_stream import ArrowStream
from ..images.image_set import ImageSet
from ..images.samples import SPLITS, Unreadable
from .request import PartialRequest, Request, differences

SHARD_ROWS = 512
SHARD_COLUMNS = ["id", "label", "picture", "features"]
REQUEST = "request.json"
_DTYPES = {torch.float16: pa.float16(), torch.float32: pa.float32()}


@dataclass(frozen=True)
class Shard:
    """Consecutive images of one split that are extracted and written together.

    Attributes:
        split: Their split.
        name: The file's name.
        indices: Their places in the image set.
        views: Rows that each of them becomes.
    """

    split: str
    name: str
    indices: range
    views: int = 1

    @property
    def part(self) -> str:
        """The name of the file with its first images, where it was interrupted."""
        return f"{self.name}.part"


@dataclass(frozen=True)
class ShardRecord:
    """What a shard's file says of itself.

    Attributes:
        images: How many of its images it holds, unreadable ones among them.
        unreadable: Those that have no row.
        began: When it was begun, in seconds since 1970.
        seconds: How long it took.
        request: Fingerprint of the request.
        remarks: How many of the images had what; see `headsmith.models.images.remarks`.
    """

    images: int
    unreadable: list[Unreadable]
    began: float
    seconds: float
    request: str
    remarks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardRows:
    """What a shard holds.

    Attributes:
        table: Columns id, label, picture and features; one row for each view of each readable image.
        record: What it says of itself.
    """

    table: pa.Table
    record: ShardRecord


@dataclass(frozen=True)
class Rows:
    """What is written to a shard.

    Attributes:
        ids: N sample ids.
        labels: ``(N,)``.
        pictures: N hashes of the decoded pictures.
        features: ``(N, D)``, float16 or float32, on the CPU.
        unreadable: The images that were left out.
        images: How many images that is.
        remarks: How many of them had what.
    """

    ids: list[str]
    labels: np.ndarray[Any, np.dtype[np.int64]]
    pictures: list[str]
    features: torch.Tensor
    unreadable: list[Unreadable]
    images: int
    remarks: dict[str, int]


def plan(images: ImageSet, train_views: int = 1) -> list[Shard]:
    """Cut an image set into shards of ``SHARD_ROWS`` images; none spans two splits.

    Args:
        images: The images.
        train_views: Rows that a training image becomes; others become one.
    """
    places = {split: [place for place, s in enumerate(images.samples) if s.split == split] for split in SPLITS}
    return [
        Shard(
            split,
            f"{split}-{number:06d}.arrow",
            range(rows[first], rows[min(first + SHARD_ROWS, len(rows)) - 1] + 1),
            train_views if split == "train" else 1,
        )
        for split, rows in places.items()
        for number, first in enumerate(range(0, len(rows), SHARD_ROWS))
    ]


def partial_request(request: Request) -> PartialRequest:
    """What an unfinished extraction says of itself."""
    return PartialRequest(**vars(request), shard_rows=SHARD_ROWS, shard_columns=SHARD_COLUMNS)


def read_partial_request(folder: Path) -> PartialRequest:
    """What the unfinished extraction in a folder says of itself.

    Raises:
        InputError: It says nothing.
        DamagedFileError: A field is missing, unknown or of another kind.
    """
    return read_record(folder / REQUEST, PartialRequest, advice="start afresh with --overwrite")


def open_partial(folder: Path, request: Request) -> None:
    """Make the folder of an unfinished extraction, or check that it belongs to this very request.

    Raises:
        InputError: It was begun with something else, or is something else.
    """
    expected = partial_request(request)
    path = folder / REQUEST
    if not path.exists() and folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
        raise InputError(f"{folder}: is not an unfinished extraction (no {REQUEST} in it); move it away")
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_record(path, expected)
        return
    changed = differences(read_partial_request(folder), expected)
    if changed:
        raise InputError(
            f"{folder}: holds an unfinished extraction with {changed}; finish that one with its own settings, or start "
            "afresh with --overwrite"
        )


def write_shard(path: Path, rows: Rows, began: float, request: Request) -> None:
    """Write one shard, or the first images of one, atomically.

    Args:
        path: The file.
        rows: What it holds.
        began: When it was begun, in seconds since 1970; it took until now.
        request: The parts that decide the features.
    """
    kind, width = _DTYPES[rows.features.dtype], rows.features.shape[1]
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.features.numpy().reshape(-1), kind), width)
    seconds = max(time.time() - began, 0.0)
    record = ShardRecord(rows.images, rows.unreadable, began, seconds, request.fingerprint, rows.remarks)
    metadata = {key: json.dumps(value) for key, value in to_json(record).items()}
    texts = {"id": pa.array(rows.ids, pa.string()), "picture": pa.array(rows.pictures, pa.string())}
    columns = texts | {"label": pa.array(rows.labels, pa.int64()), "features": values}
    write_table(path, pa.table({name: columns[name] for name in SHARD_COLUMNS}).replace_schema_metadata(metadata))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table atomically as an Arrow stream of one record batch."""
    with (
        new_file(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table.combine_chunks())


def read_shard(path: Path, shard: Shard, images: ImageSet, request: Request, *, whole: bool = True) -> ShardRows:
    """Map a shard from disk and check that it holds every one of its images once a view, in order.

    Args:
        path: The file.
        shard: What it should hold.
        images: The images.
        request: The parts that decide the features.
        whole: Whether all of its images must be there, or the first ones.

    Raises:
        InputError: It does not, is damaged, or belongs to another request.
    """
    again = "delete it and run the command again"
    try:
        rows = ArrowStream(path)
        table = pa.Table.from_batches(list(rows.batches()), rows.schema)
        found = {
            key.decode(errors="replace"): parse_json(value) for key, value in (table.schema.metadata or {}).items()
        }
    except ValueError as error:
        raise InputError(f"{str(error).removesuffix('; get it again')}; {again}") from None
    record = structured(found, ShardRecord, str(path), advice=again)
    if table.schema.names != list(SHARD_COLUMNS):
        raise InputError(f"{path}: columns are {table.schema.names}, expected {list(SHARD_COLUMNS)}; {again}")
    left_out = {one.id for one in record.unreadable}
    names = [images.samples[index].id for index in shard.indices[: record.images]]
    expected = [name for name in names if name not in left_out for _ in range(shard.views)]
    complete = record.images == len(shard.indices) or not whole
    if not complete or table["id"].to_pylist() != expected or record.request != request.fingerprint:
        raise InputError(f"{path}: holds other images than expected; delete it and run the command again")
    return ShardRows(table, record)

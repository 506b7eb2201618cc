"""Extracted features on their way: one Arrow file for some hundred images, each there whole or not at all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ...models.errors import InputError
from ...models.files import new_file, read_json, write_json
from .image_set import ImageSet
from .request import differences
from .samples import SPLITS

SHARD_ROWS = 512
_DTYPES = {torch.float16: pa.float16(), torch.float32: pa.float32()}


@dataclass(frozen=True)
class Shard:
    """Consecutive images of one split that are extracted and written together.

    Attributes:
        split: Their split.
        name: The file's name.
        indices: Their places in the image set.
    """

    split: str
    name: str
    indices: range


@dataclass(frozen=True)
class ShardRows:
    """What a shard holds.

    Attributes:
        table: Columns id, label and features, one row for each readable image.
        unreadable: ``{id, reason}`` of the others.
        seconds: How long it took.
    """

    table: pa.Table
    unreadable: list[dict[str, str]]
    seconds: float


def plan(images: ImageSet) -> list[Shard]:
    """Cut an image set into shards; none spans two splits."""
    places = {split: [place for place, s in enumerate(images.samples) if s.split == split] for split in SPLITS}
    return [
        Shard(
            split, f"{split}-{number:06d}.arrow", range(rows[first], rows[min(first + SHARD_ROWS, len(rows)) - 1] + 1)
        )
        for split, rows in places.items()
        for number, first in enumerate(range(0, len(rows), SHARD_ROWS))
    ]


def open_partial(folder: Path, request: dict[str, Any]) -> None:
    """Make the folder of an unfinished extraction, or check that it belongs to this very request.

    Raises:
        InputError: It was begun with something else, or is something else.
    """
    expected = request | {"shard_rows": SHARD_ROWS}
    path = folder / "request.json"
    if not path.exists() and folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
        raise InputError(f"{folder}: is in the way and not an unfinished extraction (no request.json); move it away")
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_json(path, expected)
        return
    changed = differences(read_json(path), expected)
    if changed:
        raise InputError(
            f"{folder}: holds an unfinished extraction with {changed}; finish that one with its own settings, or start "
            "afresh with --overwrite"
        )


def write_shard(
    path: Path,
    ids: list[str],
    labels: np.ndarray[Any, np.dtype[np.int64]],
    features: torch.Tensor,
    unreadable: list[dict[str, str]],
    seconds: float,
) -> None:
    """Write one shard atomically.

    Args:
        path: The file.
        ids: N sample ids.
        labels: ``(N,)``, int64.
        features: ``(N, D)``, float16 or float32, on the CPU.
        unreadable: ``{id, reason}`` of the images that were left out.
        seconds: How long it took.
    """
    kind = _DTYPES[features.dtype]
    values = pa.FixedSizeListArray.from_arrays(pa.array(features.numpy().reshape(-1), kind), features.shape[1])
    metadata = {"unreadable": json.dumps(unreadable), "seconds": json.dumps(seconds)}
    columns = {"id": pa.array(ids, pa.string()), "label": pa.array(labels, pa.int64()), "features": values}
    write_table(path, pa.table(columns).replace_schema_metadata(metadata))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table atomically as an Arrow stream of one record batch."""
    with (
        new_file(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table.combine_chunks())


def read_shard(path: Path, shard: Shard, images: ImageSet) -> ShardRows:
    """Map a shard from disk and check that it holds every one of its images once, in order.

    Raises:
        InputError: It does not, or is damaged.
    """
    try:
        table = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        metadata = table.schema.metadata
        unreadable, seconds = json.loads(metadata[b"unreadable"]), json.loads(metadata[b"seconds"])
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); delete it and run the command again") from error
    left_out = {entry["id"] for entry in unreadable}
    expected = [images.samples[index].id for index in shard.indices]
    if table["id"].to_pylist() != [name for name in expected if name not in left_out]:
        raise InputError(f"{path}: holds other images than expected; delete it and run the command again")
    return ShardRows(table, unreadable, seconds)

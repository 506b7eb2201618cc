"""A shard while it is computed: batch by batch, kept at any time."""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....core.errors import InputError
from ..images.samples import Unreadable
from .embedding import Pending
from .request import Request
from .shards import Rows, Shard, ShardRows, write_shard


@dataclass
class FilledBatch:
    """Consecutive images of a shard; their features come with `finish`.

    Attributes:
        ids: N sample ids, one for each view.
        labels: ``(N,)`` int64.
        pictures: N hashes of the pictures.
        remarks: How many of the images had what; see `headsmith.models.images.remarks`.
        unreadable: The images without a row.
        images: How many images these are.
        pending: Where the features come from.
        features: ``(N, D)`` on the CPU, once they are there.
    """

    ids: list[str]
    labels: np.ndarray[Any, np.dtype[np.int64]]
    pictures: list[str]
    remarks: Counter[str]
    unreadable: list[Unreadable]
    images: int
    pending: Pending | None = None
    features: Tensor | None = None

    def finish(self) -> None:
        """Wait for the features.

        Raises:
            InputError: One of them is not finite.
        """
        if self.features is None and self.pending is not None:
            self.features = self.pending.wait()
            self.pending = None


@dataclass
class Filled:
    """What is computed of a shard.

    Attributes:
        shard: The shard.
        batches: Its first batches, in order.
        began: When it was begun, in seconds since 1970, without pauses.
    """

    shard: Shard
    batches: list[FilledBatch] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    @property
    def images(self) -> int:
        """How many of its images were looked at."""
        return sum(batch.images for batch in self.batches)

    def go_on(self, found: ShardRows) -> None:
        """Begin with what an earlier process kept."""
        table = found.table
        blocks = [chunk.flatten().to_numpy() for chunk in table["features"].chunks]
        values = np.concatenate(blocks).reshape(len(table), table.schema.field("features").type.list_size)
        self.batches = [
            FilledBatch(
                ids=table["id"].to_pylist(),
                labels=table["label"].to_numpy(),
                pictures=table["picture"].to_pylist(),
                remarks=Counter(found.record.remarks),
                unreadable=found.record.unreadable,
                images=found.record.images,
                features=torch.from_numpy(values),
            )
        ]
        self.began = time.time() - found.record.seconds

    def keep(self, folder: Path, request: Request) -> None:
        """Write the batches that are finished, or can be: the shard, or where some are missing its first images."""
        with suppress(InputError):  # told already by whoever waited for it
            for batch in self.batches:
                batch.finish()
        done = list(takewhile(lambda batch: batch.features is not None, self.batches))
        rows = Rows(
            ids=[name for batch in done for name in batch.ids],
            labels=np.concatenate([np.empty(0, np.int64), *(batch.labels for batch in done)]),
            pictures=[picture for batch in done for picture in batch.pictures],
            features=torch.cat([batch.features for batch in done if batch.features is not None] or [torch.empty(0, 0)]),
            remarks=sum((batch.remarks for batch in done), Counter()),
            unreadable=[one for batch in done for one in batch.unreadable],
            images=sum(batch.images for batch in done),
        )
        if rows.images == len(self.shard.indices):
            write_shard(folder / self.shard.name, rows, self.began, request)
            (folder / self.shard.part).unlink(missing_ok=True)
        elif rows.images:
            write_shard(folder / self.shard.part, rows, self.began, request)

"""The parts of an extraction, computed by as many processes as there are."""

import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain, islice

import torch
from filelock import FileLock
from PIL import Image

from ....core.progress import Advance, progress
from ....models.images import UnreadableImage, remarks
from ..images.batches import AHEAD, Pixels, decode, gather
from ..images.image_set import ImageSet
from ..images.kept_crops import KeptCrops
from ..images.picture_identity import picture_hash
from ..images.samples import Sample, Unreadable
from . import shards as parts
from .embedding import Embedder
from .shard_buffer import Filled, FilledBatch
from .shards import Shard, ShardRows, read_shard
from .views import Views
from .workers import Worker, drop

_POLL = 0.2
_IN_FLIGHT = 2
Prepared = tuple[Pixels, str, tuple[str, ...]]
Decoded = Iterator[tuple[Sample, Prepared | UnreadableImage]]


@dataclass
class Filling:
    """What every shard of one extraction shares.

    Attributes:
        images: The images.
        shards: How they are cut.
        embedder: From pixels to features.
        views: From an image to pixels.
        batch_size: Crops a forward pass.
        workers: How many images are decoded at once.
        strict: Stop at an unreadable image.
        shown: Whether progress is shown.
    """

    images: ImageSet
    shards: list[Shard]
    embedder: Embedder
    views: Views
    batch_size: int
    workers: int
    strict: bool
    shown: bool = True
    _counted: set[str] = field(default_factory=set)

    def fill(self, worker: Worker) -> None:
        """Compute the shards that are not there and that no other process computes, until all are there.

        What another process had taken and did not finish is taken over.
        """
        with progress("Extracting", len(self.images), "images", done=self._news(worker), shown=self.shown) as advance:
            while missing := self._missing(worker):
                if not self._compute(missing, worker, advance):
                    time.sleep(_POLL)
                advance(self._news(worker))

    def _missing(self, worker: Worker) -> list[Shard]:
        names = worker.listing()
        return [] if names is None else [shard for shard in self.shards if shard.name not in names]

    def _news(self, worker: Worker) -> int:
        """How many images are in shards that have come since it was last asked, from whatever process."""
        names = (worker.listing() or set()) - self._counted
        there = [shard for shard in self.shards if shard.name in names]
        self._counted.update(shard.name for shard in there)
        return sum(len(shard.indices) for shard in there)

    def kept(self, worker: Worker) -> str:
        """What is there of an extraction that is interrupted, in words; empty where that is nothing."""
        names = worker.listing() or set()
        there = sum(len(shard.indices) for shard in self.shards if shard.name in names)
        there += sum(self._first_images(shard, worker).record.images for shard in self.shards if shard.part in names)
        if not there:
            return ""
        return f"{worker.partial} keeps {there:,} of {len(self.images):,} images; the same command goes on from there"

    def _first_images(self, shard: Shard, worker: Worker) -> ShardRows:
        return read_shard(worker.partial / shard.part, shard, self.images, worker.request, whole=False)

    def _compute(self, missing: list[Shard], worker: Worker, advance: Advance) -> bool:
        """Take and compute what can be had; whether that was anything. Decoding runs ahead across shards."""
        leases: deque[tuple[Filled, FileLock]] = deque()
        indices = self._taken(missing, worker, leases, advance)
        ahead = max(2 * self.workers, min(AHEAD // len(self.views.names), parts.SHARD_ROWS))
        stream = decode(self.images, indices, self._prepare, self.workers, ahead=ahead, kept=self._kept_crops())
        worked = False
        try:
            with closing(stream):
                for first in stream:
                    filled, lease = leases[0]
                    rows = chain([first], islice(stream, len(filled.shard.indices) - filled.images - 1))
                    self._counted.add(filled.shard.name)
                    self._extract(filled, rows, worker, advance)
                    leases.popleft()
                    drop(lease)
                    worked = True
        finally:
            for _, lease in leases:
                lease.release()
        return worked

    def _kept_crops(self) -> KeptCrops | None:
        """What other extractions of these images decoded, where a training image is one view."""
        if self.images.crops is None or len(self.views.names) > 1:
            return None
        return self.images.crops.of(self.views.preprocessing)

    def _prepare(self, image: Image.Image, split: str) -> Prepared:
        seen = self.views.preprocessing.flatten(image)
        return self.views(seen, split), picture_hash(seen), remarks(image)

    def _taken(
        self, missing: list[Shard], worker: Worker, leases: deque[tuple[Filled, FileLock]], advance: Advance
    ) -> Iterator[int]:
        """Take one shard after the other, as decoding gets to it, and give the indices of its images."""
        crops = self.images.crops
        for shard in reversed(missing) if crops is not None and crops.backwards else missing:
            lease = worker.lease(shard.name)
            if lease is not None:
                filled = Filled(shard)
                leases.append((filled, lease))
                if (worker.partial / shard.part).exists():
                    filled.go_on(self._first_images(shard, worker))
                    advance(filled.images)
                yield from shard.indices[filled.images :]
                advance(self._news(worker))

    def _extract(self, filled: Filled, stream: Decoded, worker: Worker, advance: Advance) -> None:
        shard = filled.shard
        try:
            while window := list(islice(stream, max(1, self.batch_size // shard.views))):
                filled.batches.append(self._begin(window, shard.views))
                if len(filled.batches) > _IN_FLIGHT:
                    filled.batches[-1 - _IN_FLIGHT].finish()
                advance(len(window))
            for batch in filled.batches:
                batch.finish()
        except BaseException:  # whatever ends it, what is computed need not be computed again
            with suppress(OSError):  # a full disk, perhaps the one that ended it
                filled.keep(worker.partial, worker.request)
            raise
        filled.keep(worker.partial, worker.request)

    def _begin(self, window: list[tuple[Sample, Prepared | UnreadableImage]], views: int) -> FilledBatch:
        """Begin to compute the features of some decoded images."""
        unreadable: list[Unreadable] = []
        pixels = [(sample, found if isinstance(found, UnreadableImage) else found[0]) for sample, found in window]
        batch = gather(pixels, self.strict, lambda name, reason: unreadable.append(Unreadable(name, reason)))
        readable = [found for _, found in window if not isinstance(found, UnreadableImage)]
        names = [name for name in batch.ids for _ in range(views)]
        pending = self.embedder(batch.pixels.reshape(-1, *batch.pixels.shape[-3:]), names) if names else None
        return FilledBatch(
            ids=names,
            labels=batch.labels.repeat(views),
            pictures=[picture for _, picture, _ in readable for _ in range(views)],
            remarks=Counter(remark for _, _, found in readable for remark in found),
            unreadable=unreadable,
            images=len(window),
            pending=pending,
            features=torch.empty(0, self.embedder.feature_dim, dtype=self.embedder.dtype) if pending is None else None,
        )

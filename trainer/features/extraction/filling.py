"""The parts of an extraction, computed by as many processes as there are."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from ....core.progress import Advance, progress
from ....models.images import UnreadableImage
from ..images.batches import AHEAD, Pixels, decode, gather
from ..images.image_set import ImageSet
from ..images.samples import Sample
from . import shards as parts
from .embedding import Embedder, Pending
from .membership import Member, drop
from .shards import Shard, write_shard
from .views import Views

_POLL = 0.2
_IN_FLIGHT = 2
Decoded = Iterator[tuple[Sample, Pixels | UnreadableImage]]


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

    def fill(self, member: Member) -> None:
        """Compute the shards that are not there and that no other process computes, until all are there.

        What another process had taken and did not finish is taken over.
        """
        with progress("Extracting", len(self.images), "images", done=self._news(member), shown=self.shown) as advance:
            while missing := self._missing(member):
                if not self._compute(missing, member, advance):
                    time.sleep(_POLL)
                advance(self._news(member))

    def _missing(self, member: Member) -> list[Shard]:
        names = member.listing()
        return [] if names is None else [shard for shard in self.shards if shard.name not in names]

    def _news(self, member: Member) -> int:
        """How many images are in shards that have come since it was last asked, from whatever process."""
        names = (member.listing() or set()) - self._counted
        there = [shard for shard in self.shards if shard.name in names]
        self._counted.update(shard.name for shard in there)
        return sum(len(shard.indices) for shard in there)

    def _compute(self, missing: list[Shard], member: Member, advance: Advance) -> bool:
        """Take and compute what can be had; whether that was anything. Decoding runs ahead across shards."""
        claims: deque[tuple[Shard, FileLock]] = deque()
        indices = self._taken(missing, member, claims, advance)
        ahead = max(2 * self.workers, min(AHEAD // len(self.views.names), parts.SHARD_ROWS))
        stream = decode(self.images, indices, self.views, self.workers, ahead=ahead)
        worked = False
        try:
            with closing(stream):
                for first in stream:
                    shard, claim = claims[0]
                    rows = chain([first], islice(stream, len(shard.indices) - 1))
                    self._counted.add(shard.name)
                    self._extract(shard, rows, member, advance)
                    claims.popleft()
                    drop(claim)
                    worked = True
        finally:
            for _, claim in claims:
                claim.release()
        return worked

    def _taken(
        self, missing: list[Shard], member: Member, claims: deque[tuple[Shard, FileLock]], advance: Advance
    ) -> Iterator[int]:
        """Take one shard after the other, as decoding gets to it, and give the indices of its images."""
        for shard in missing:
            claim = member.claim(shard.name)
            if claim is not None:
                claims.append((shard, claim))
                yield from shard.indices
                advance(self._news(member))

    def _extract(self, shard: Shard, stream: Decoded, member: Member, advance: Advance) -> None:
        began = time.time()
        unreadable: list[dict[str, str]] = []
        ids: list[str] = []
        labels = [np.empty(0, np.int64)]
        features = [torch.empty(0, self.embedder.feature_dim, dtype=self.embedder.dtype)]
        pending: deque[Pending] = deque()
        report = lambda name, reason: unreadable.append({"id": name, "reason": reason})  # noqa: E731
        while window := list(islice(stream, max(1, self.batch_size // shard.views))):
            batch = gather(window, self.strict, report)
            names = [name for name in batch.ids for _ in range(shard.views)]
            if names:
                pixels = batch.pixels.reshape(-1, *batch.pixels.shape[-3:])
                pending.append(self.embedder(pixels, names))
            ids += names
            labels.append(batch.labels.repeat(shard.views))
            features += _finished(pending, _IN_FLIGHT)
            advance(len(window))
        features += _finished(pending, 0)
        rows = ids, np.concatenate(labels), torch.cat(features)
        write_shard(member.partial / shard.name, rows, unreadable, began, member.request)


def _finished(pending: deque[Pending], keep: int) -> list[Tensor]:
    """Take the oldest features, waiting for them, until only ``keep`` batches are in flight."""
    return [pending.popleft().wait() for _ in range(len(pending) - keep)]

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
from ..images.picture_identity import picture_hash
from ..images.samples import Sample, Unreadable
from . import shards as parts
from .embedding import Embedder
from .shard_buffer import Filled, FilledBatch
from .shards import Shard, ShardRows, read_shard
from .views import Views
from .workers import Member, drop

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

    def kept(self, member: Member) -> str:
        """What is there of an extraction that is interrupted, in words; empty where that is nothing."""
        names = member.listing() or set()
        there = sum(len(shard.indices) for shard in self.shards if shard.name in names)
        there += sum(self._first_images(shard, member).record.images for shard in self.shards if shard.part in names)
        if not there:
            return ""
        return f"{member.partial} keeps {there:,} of {len(self.images):,} images; the same command goes on from there"

    def _first_images(self, shard: Shard, member: Member) -> ShardRows:
        return read_shard(member.partial / shard.part, shard, self.images, member.request, whole=False)

    def _compute(self, missing: list[Shard], member: Member, advance: Advance) -> bool:
        """Take and compute what can be had; whether that was anything. Decoding runs ahead across shards."""
        claims: deque[tuple[Filled, FileLock]] = deque()
        indices = self._taken(missing, member, claims, advance)
        ahead = max(2 * self.workers, min(AHEAD // len(self.views.names), parts.SHARD_ROWS))
        stream = decode(self.images, indices, self._prepare, self.workers, ahead=ahead)
        worked = False
        try:
            with closing(stream):
                for first in stream:
                    filled, claim = claims[0]
                    rows = chain([first], islice(stream, len(filled.shard.indices) - filled.images - 1))
                    self._counted.add(filled.shard.name)
                    self._extract(filled, rows, member, advance)
                    claims.popleft()
                    drop(claim)
                    worked = True
        finally:
            for _, claim in claims:
                claim.release()
        return worked

    def _prepare(self, image: Image.Image, split: str) -> Prepared:
        seen = self.views.preprocessing.flatten(image)
        return self.views(seen, split), picture_hash(seen), remarks(image)

    def _taken(
        self, missing: list[Shard], member: Member, claims: deque[tuple[Filled, FileLock]], advance: Advance
    ) -> Iterator[int]:
        """Take one shard after the other, as decoding gets to it, and give the indices of its images."""
        for shard in missing:
            claim = member.claim(shard.name)
            if claim is not None:
                filled = Filled(shard)
                claims.append((filled, claim))
                if (member.partial / shard.part).exists():
                    filled.go_on(self._first_images(shard, member))
                    advance(filled.images)
                yield from shard.indices[filled.images :]
                advance(self._news(member))

    def _extract(self, filled: Filled, stream: Decoded, member: Member, advance: Advance) -> None:
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
                filled.keep(member.partial, member.request)
            raise
        filled.keep(member.partial, member.request)

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

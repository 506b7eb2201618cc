"""Which backbones go first where time is short: those that promise most for what they cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ...core.environment import pick_device
from ...core.errors import InputError
from ...core.files import make_folder
from ...core.progress import progress
from ...core.records import read_record, write_record
from ...metrics.transferability import ROWS, promise
from ...models.backbone import load_backbone
from ...trainer.features.extraction.embedding import Embedder
from ...trainer.features.images.batches import image_batches
from ...trainer.features.images.image_set import ImageSet
from ..zoo.failure import failure
from .options import BenchmarkOptions
from .plan import FULL, Unit, key_of

PROMISES = "promises"
_AGAIN = "delete it and run the benchmark again"


@dataclass(frozen=True)
class Promise:
    """What a few hundred training images say of a backbone.

    Attributes:
        key: Of the backbone and the images.
        score: See `headsmith.metrics.transferability.promise`; ``None`` where it could not be had.
        seconds: What one image took.
        reason: Why there is no score.
    """

    key: str
    score: float | None
    seconds: float
    reason: str = ""


def promises(out: Path, images: ImageSet, units: Sequence[Unit], options: BenchmarkOptions) -> dict[str, Promise]:
    """What each backbone promises, by the name of its features; what was scored before is read."""
    make_folder(out / PROMISES)
    drawn = _drawn(images.split("train"))
    first = {unit.base: unit for unit in reversed(units)}
    found = {}
    with progress("Scoring", len(first), "backbones") as advance:
        for base, unit in first.items():
            path, key = out / PROMISES / f"{base}.json", key_of(unit, FULL, images.fingerprint, options.max_drop)
            known = read_record(path, Promise, advice=_AGAIN) if path.is_file() else None
            if known is None or known.key != key or known.score is None:
                known = _scored(key, drawn, unit, options)
                write_record(path, known)
            found[base] = known
            advance(1, base)
    return found


def in_order(units: Sequence[Unit], found: dict[str, Promise]) -> list[Unit]:
    """The most promising for their cost first.

    First those that no other beats in both score and time an image (the Pareto front), then those that only these
    beat, and so on; within a front the higher score first. What has no score fails soon, and goes first.
    """
    waiting = {base: one for base, one in found.items() if one.score is not None}
    place = {base: (-1, 0.0) for base in found if base not in waiting}
    front = 0
    while waiting:
        best = [base for base, one in waiting.items() if not any(_beats(other, one) for other in waiting.values())]
        place |= {base: (front, -(waiting[base].score or 0.0)) for base in best}
        waiting = {base: one for base, one in waiting.items() if base not in best}
        front += 1
    return sorted(units, key=lambda unit: place[unit.base])


def _beats(one: Promise, other: Promise) -> bool:
    scores, seconds = (one.score or 0.0, other.score or 0.0), (one.seconds, other.seconds)
    return scores[0] >= scores[1] and seconds[0] <= seconds[1] and (scores[0] > scores[1] or seconds[0] < seconds[1])


def _drawn(train: ImageSet) -> ImageSet:
    """At most 500 training images, of each class its share and at least two."""
    labels = np.array([sample.label for sample in train.samples])
    share = min(1.0, ROWS / max(1, len(labels)))
    random = np.random.default_rng(0)
    chosen: list[int] = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        chosen += random.permutation(own)[: max(2, int(share * len(own)))].tolist()
    return replace(train, samples=[train.samples[row] for row in sorted(chosen[: 4 * ROWS])])


def _scored(key: str, images: ImageSet, unit: Unit, options: BenchmarkOptions) -> Promise:
    entry = unit.entry
    try:
        network = load_backbone(
            entry.backbone,
            checkpoint=entry.checkpoint,
            image_size=entry.image_size,
            preprocessing=entry.preprocessing,
            layer=entry.layer,
            drop_background=entry.drop_background,
        )
        embedder = Embedder(network, pick_device(options.device), torch.float32, False)
        start, features, labels = time.perf_counter(), [], []
        for batch in image_batches(images, network.preprocessing, min(options.batch_size, 32)):
            features.append(embedder(batch.pixels, batch.ids).wait().numpy())
            labels.append(batch.labels)
        seconds = time.perf_counter() - start
        if not features:
            raise InputError(f"{images.source.source}: none of {len(images)} training images could be read")
        score = promise(np.concatenate(features), np.concatenate(labels))
    except Exception as error:  # noqa: BLE001 - as in `Stages`: it fails this backbone alone
        return Promise(key, None, 0.0, failure(error, entry.backbone))
    return Promise(key, score, seconds / len(np.concatenate(labels)))

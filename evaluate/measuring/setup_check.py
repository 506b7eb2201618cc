"""The sanity probe of one classifier on some of the held-out images."""

from dataclasses import replace
from functools import partial

from ...export.parity.held_out import HeldOutImages
from ...export.runtime import Array, Model
from ...models.preprocessing import Preprocessing
from ..held_out import HeldOutData
from ..zoo import SAMPLE, Candidate, other_crops, power, probe


def probed(candidate: Candidate, model: Model, data: HeldOutData) -> tuple[list[str], list[str]]:
    """What `probe` doubts on some of the images that have one right class, and what it could have seen: a note."""
    recipe = candidate.preprocessing
    if candidate.head_only or recipe is None or data.sets is not None or model.metadata.resize:
        return [], []
    sample = data.matched(candidate, model, strict=False).sample(SAMPLE)
    batches = list(sample.batches(SAMPLE))
    if not batches or not isinstance(sample, HeldOutImages):
        return [], []
    (batch,) = batches
    read = set(batch.ids)
    shown = sample.only([one for one in sample.images.samples if one.id in read])
    crops = {name: partial(_first, shown, other) for name, other in other_crops(recipe).items()}
    doubts = probe(candidate, model, batch.inputs, batch.labels, crops)
    return doubts, [power(candidate, model, batch.inputs, crops)]


def _first(sample: HeldOutImages, recipe: Preprocessing, count: int) -> Array:
    """The first images of a sample under another recipe: ``(count, H, W, 3)``, uint8."""
    (batch,) = replace(sample.only(sample.images.samples[:count]), preprocessing=recipe).batches(count)
    return batch.inputs

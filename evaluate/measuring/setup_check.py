"""The sanity probe of one classifier on some of the held-out images."""

from dataclasses import replace
from functools import partial

from ...core.coded_warnings import CodedWarning
from ...export.held_out import HeldOut, HeldOutImages
from ...export.runtime import Array, Model
from ...models.preprocessing import Preprocessing
from ..zoo import SAMPLE, Candidate, other_crops, power, probe


def probed(candidate: Candidate, model: Model, held_out: HeldOut, at_once: int) -> tuple[list[CodedWarning], list[str]]:
    """What `probe` warns of on some of the images that have one right class, and what it could have seen: a note."""
    recipe = candidate.preprocessing
    if not isinstance(held_out, HeldOutImages) or recipe is None or held_out.sets is not None or model.metadata.resize:
        return [], []
    sample = replace(held_out.sample(SAMPLE), strict=False)
    batch = next(sample.batches(SAMPLE), None)
    if batch is None:
        return [], []
    shown = sample.only(sample.rows_of(batch.ids))
    crops = {name: partial(_first, shown, other) for name, other in other_crops(recipe).items()}
    found = probe(candidate, model, batch.inputs, batch.labels, crops, at_once)
    return found, [power(candidate, model, batch.inputs, crops)]


def _first(sample: HeldOutImages, recipe: Preprocessing, count: int) -> Array:
    """The first images of a sample under another recipe: ``(count, H, W, 3)``, uint8."""
    (batch,) = replace(sample.only(range(count)), prepare=recipe).batches(count)
    return batch.inputs

"""A sanity check before a run: would another setup than the declared one be clearly better?"""

from collections.abc import Iterator, Mapping

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...core.counted import counted
from ...core.errors import InputError
from ...export.runtime import Array, Model
from ...metrics.paired import paired_difference, smallest_difference
from .candidate import Candidate
from .external_onnx import ExternalOnnxModel
from .setups import Crop, Setups, logits_of, other_orders, other_setups
from .stored_answers import stored_answer_warnings

SAMPLE, FIRST, BATCH = 256, 48, 32
ALPHA = 0.01
FEW, LARGE, DOMINANT, BALANCED = 20, 20, 0.9, 0.5


def probe(
    candidate: Candidate,
    model: Model,
    pixels: Array,
    labels: Array,
    crops: Mapping[str, Crop] | None = None,
    at_once: int = BATCH,
) -> list[CodedWarning]:
    """Ask a classifier about some labelled images under its declared setup, and under others that are usual.

    Channel orders, normalisations and crops are first tried on `FIRST` images; only where the best of them has more of
    these right than the declared setup is it run on all. Shifted and sorted labels need no further run. What is best is
    compared with the declared setup on the same images by McNemar's exact test, at 0.01 by Bonferroni over all that
    could be tried; `power` says what that can see. A setup that the file cannot run is left out. Of a file that
    normalises inside only channels and crops are tried. Fewer than `FEW` images could not tell, and are not run again.
    Answers that are stored beside a file are checked too.

    Args:
        candidate: What is declared.
        model: The candidate, opened.
        pixels: ``(N, H, W, 3)`` uint8, RGB, as ``model.metadata.prepare`` gives them; N = `SAMPLE` is enough.
        labels: ``(N,)`` integers, the right outputs.
        crops: Other ways to resize and crop (see `other_crops`): what each does, and from K to the first K images.
        at_once: Images a run, at most 32.

    Returns:
        Warnings; none where all is well, or too few images could tell.
    """
    size = model.metadata.batch_size(min(BATCH, at_once))
    logits = logits_of(lambda batch: model.run(batch).logits, pixels, size)
    best = _best(logits)
    found = [*_dominated(model, pixels, best, labels), *_probabilities(logits)]
    found += stored_answer_warnings(model) if isinstance(model, ExternalOnnxModel) else ()
    setups = other_setups(candidate, model, pixels, crops or {}, size) if len(pixels) >= FEW else {}
    orders = other_orders(candidate.names)
    answers = {name: np.where(best < 0, -1, order[best]) for name, order in orders.items()}
    promising = _promising(setups, labels[:FIRST], best[:FIRST])
    if promising is not None:
        answers[promising] = _answers(setups, promising, len(pixels))
    name = max(answers, key=lambda name: np.count_nonzero(answers[name] == labels))
    return [*found, *_better(name, answers[name] == labels, best == labels, len(setups) + len(orders))]


def power(candidate: Candidate, model: Model, pixels: Array, crops: Mapping[str, Crop]) -> str:
    """The smallest drop that `probe` could have seen on these images, in words."""
    n, tried = len(pixels), other_setups(candidate, model, pixels, crops, 1)
    if n < FEW:
        return f"sanity probe: {counted(n, 'image is', 'images are')} too few to try other setups than the declared one"
    share = smallest_difference(n, ALPHA / (len(tried) + len(other_orders(candidate.names))))
    seen = "no drop" if share is None else f"only drops above {100 * share:.1f} points"
    return f"sanity probe: {n} images: {seen} of the declared setup against another would be seen"


def _best(logits: Array) -> Array:
    """The first answer of each row, -1 for a row with NaN, which answers nothing."""
    return np.where(np.isnan(logits).any(axis=1), -1, logits.argmax(axis=1))


def _answers(setups: Setups, name: str, count: int) -> Array:
    """The answers to the first images under one setup; -1, which is no answer, where the file cannot run it."""
    try:
        return _best(setups[name](count))
    except InputError:
        return np.full(count, -1)


def _promising(setups: Setups, labels: Array, best: Array) -> str | None:
    """The setup that has the most images right, if these are more than under the declared one."""
    right = {name: np.count_nonzero(_answers(setups, name, len(labels)) == labels) for name in setups}
    name = max(right, key=lambda name: right[name], default=None)
    return name if name is not None and right[name] > np.count_nonzero(best == labels) else None


def _better(name: str, other: Array, declared: Array, tests: int) -> Iterator[CodedWarning]:
    paired = paired_difference(other, declared)
    if paired.difference > 0 and paired.p * tests <= ALPHA:
        yield CodedWarning(
            "other-setup",
            f"{name} would be clearly better than the declared setup: {np.count_nonzero(other)} of {len(other)} images "
            f"right instead of {np.count_nonzero(declared)}",
        )


def _dominated(model: Model, pixels: Array, best: Array, labels: Array) -> Iterator[CodedWarning]:
    answers = best[best >= 0]
    if len(answers) < FEW:
        return
    share, balance = (np.bincount(rows).max() / len(rows) for rows in (answers, labels))
    if share > DOMINANT and balance <= BALANCED:
        reach = np.abs(model.feed(pixels[:FIRST]).astype(np.float64)).max()
        far = f", and its input reaches {reach:.0f}" if isinstance(model, ExternalOnnxModel) and reach > LARGE else ""
        message = f"one class takes {100 * share:.0f} % of the answers{far}; is it fed as it was trained?"
        yield CodedWarning("one-class", message)


def _probabilities(logits: Array) -> Iterator[CodedWarning]:
    if (logits >= 0).all() and np.allclose(logits.sum(axis=1), 1, atol=1e-3):
        message = "its outputs are probabilities, not logits, so that NLL and calibration would be wrong"
        yield CodedWarning("probabilities", message)

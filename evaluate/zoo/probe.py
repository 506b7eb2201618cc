"""A sanity check before a run: would another setup than the declared one be clearly better?"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...export.runtime import Array, Model
from ...models.class_names import ClassNames
from ...models.preprocessing import CHANNEL_ORDERS, Preprocessing, Triple
from ..statistics import paired_difference
from .candidate import Candidate
from .foreign_model import ForeignModel
from .stored_answers import stored_doubts

SAMPLE, FIRST, BATCH = 256, 48, 32
ALPHA = 0.001
FEW, LARGE, DOMINANT, BALANCED = 20, 20, 0.9, 0.5
NORMALISATIONS: dict[str, tuple[float, Triple, Triple]] = {
    "ImageNet's mean and deviation": (1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "pixels in -1..1": (1 / 255, (0.5,) * 3, (0.5,) * 3),
    "pixels in 0..1": (1 / 255, (0.0,) * 3, (1.0,) * 3),
    "pixels in 0..255": (1.0, (0.0,) * 3, (1.0,) * 3),
    "Caffe's mean in 0..255": (1.0, (123.68, 116.779, 103.939), (1.0,) * 3),
}
Setups = dict[str, Callable[[Array], Array]]


def probe(candidate: Candidate, model: Model, pixels: Array, labels: Array) -> list[str]:
    """Ask a classifier about some labelled images under its declared setup, and under others that are usual.

    Channel orders and normalisations are first tried on `FIRST` images; only where the best of them has more of these
    right than the declared setup is it run on all. Shifted and sorted labels need no further run. What is best is
    compared with the declared setup by McNemar's exact test, at 0.001 by Bonferroni over all that was tried. Of a file
    that normalises inside only the channels are tried. Fewer than `FEW` images could not tell, and are not run again.
    Answers that are stored beside a file are checked too.

    Args:
        candidate: What is declared.
        model: The candidate, opened.
        pixels: ``(N, H, W, 3)`` uint8, RGB, as ``model.metadata.prepare`` gives them; N = `SAMPLE` is enough.
        labels: ``(N,)`` integers, the right outputs.

    Returns:
        What is doubtful, a sentence each; nothing where all is well, or too few images could tell.
    """
    size = model.metadata.batch_size(BATCH)
    logits = _logits(lambda batch: model.run(batch).logits, pixels, size)
    best = _best(logits)
    doubts = [*_dominated(model, pixels, best, labels), *_probabilities(logits)]
    doubts += stored_doubts(model) if isinstance(model, ForeignModel) else ()
    setups = _setups(candidate, model) if len(pixels) >= FEW else {}
    orders = _orders(candidate.names)
    answers = {name: np.where(best < 0, -1, order[best]) for name, order in orders.items()}
    promising = _promising(setups, pixels[:FIRST], labels[:FIRST], best[:FIRST], size)
    if promising is not None:
        answers[promising] = _best(_logits(setups[promising], pixels, size))
    name = max(answers, key=lambda name: np.count_nonzero(answers[name] == labels))
    return [*doubts, *_better(name, answers[name] == labels, best == labels, len(setups) + len(orders))]


def _logits(run: Callable[[Array], Array], pixels: Array, size: int) -> Array:
    """The logits of all pixels, ``size`` at a time."""
    return np.concatenate([run(pixels[start : start + size]) for start in range(0, len(pixels), size)])


def _best(logits: Array) -> Array:
    """The first answer of each row, -1 for a row with NaN, which answers nothing."""
    return np.where(np.isnan(logits).any(axis=1), -1, logits.argmax(axis=1))


def _setups(candidate: Candidate, model: Model) -> Setups:
    """Other ways to feed the file: what each changes, and from pixels to logits."""
    if candidate.head_only:
        return {}
    if not isinstance(model, ForeignModel) or candidate.preprocessing is None:
        return {"the channel order BGR": lambda pixels: model.run(pixels[..., ::-1]).logits}
    return {name: partial(_run, model, recipe) for name, recipe in _recipes(candidate.preprocessing, model)}


def _run(model: ForeignModel, recipe: Preprocessing, pixels: Array) -> Array:
    return model.answer(model.fed_by(recipe, pixels)).logits


def _recipes(declared: Preprocessing, model: ForeignModel) -> Iterator[tuple[str, Preprocessing]]:
    for order in CHANNEL_ORDERS:
        if order != declared.channel_order:
            mean, std = _reversed(declared.mean), _reversed(declared.std)
            yield f"the channel order {order.upper()}", replace(declared, channel_order=order, mean=mean, std=std)
        for name, (scale, mean, std) in NORMALISATIONS.items() if model.takes_floats else ():
            if order == "bgr":
                mean, std = _reversed(mean), _reversed(std)
            other = replace(declared, channel_order=order, scale=scale, mean=mean, std=std)
            if other != declared:
                yield f"{name}, {order.upper()}", other


def _reversed(values: Triple) -> Triple:
    first, second, third = values
    return third, second, first


def _promising(setups: Setups, pixels: Array, labels: Array, best: Array, size: int) -> str | None:
    """The setup that has the most images right, if these are more than under the declared one."""
    right = {name: np.count_nonzero(_best(_logits(run, pixels, size)) == labels) for name, run in setups.items()}
    name = max(right, key=lambda name: right[name], default=None)
    return name if name is not None and right[name] > np.count_nonzero(best == labels) else None


def _orders(names: ClassNames) -> dict[str, Array]:
    """Other orders of the outputs: for each output the class that it would be; C and -1 stand for none."""
    count = len(names[0])
    found = {
        "labels shifted down by one (a background class, or ids that start at 1)": np.arange(count) - 1,
        "labels shifted up by one": np.arange(count) + 1,
    }
    for column in names:
        first = min(column)
        found[f"outputs in the order of the sorted names ({first!r}, ...)"] = np.argsort(
            np.array(column), kind="stable"
        )
        if all(name.isdecimal() for name in column):
            found["outputs in the order of the numbers"] = np.argsort(np.array(column, dtype=np.int64), kind="stable")
    return {name: order for name, order in found.items() if (order != np.arange(count)).any()}


def _better(name: str, other: Array, declared: Array, tests: int) -> Iterator[str]:
    paired = paired_difference(other, declared)
    if paired.difference > 0 and paired.p * tests < ALPHA:
        yield (
            f"{name} would be clearly better than the declared setup: {np.count_nonzero(other)} of {len(other)} images "
            f"right instead of {np.count_nonzero(declared)}"
        )


def _dominated(model: Model, pixels: Array, best: Array, labels: Array) -> Iterator[str]:
    answers = best[best >= 0]
    if len(answers) < FEW:
        return
    share, balance = (np.bincount(rows).max() / len(rows) for rows in (answers, labels))
    if share > DOMINANT and balance <= BALANCED:
        reach = np.abs(model.feed(pixels[:FIRST]).astype(np.float64)).max()
        far = f", and its input reaches {reach:.0f}" if isinstance(model, ForeignModel) and reach > LARGE else ""
        yield f"one class takes {100 * share:.0f} % of the answers{far}; is it fed as it was trained?"


def _probabilities(logits: Array) -> Iterator[str]:
    if (logits >= 0).all() and np.allclose(logits.sum(axis=1), 1, atol=1e-3):
        yield "its outputs are probabilities, not logits, so that NLL and calibration would be wrong"

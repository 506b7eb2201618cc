"""Other setups than the declared one: channels, normalisation, resize and crop, orders of the outputs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ...export.runtime import Array, Model
from ...models.class_names import ClassNames
from ...models.preprocessing import CHANNEL_ORDERS, Preprocessing, Triple
from .candidate import Candidate
from .external_onnx import ExternalOnnxModel

NORMALISATIONS: dict[str, tuple[float, Triple, Triple]] = {
    "ImageNet's mean and deviation": (1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "pixels in -1..1": (1 / 255, (0.5,) * 3, (0.5,) * 3),
    "pixels in 0..1": (1 / 255, (0.0,) * 3, (1.0,) * 3),
    "pixels in 0..255": (1.0, (0.0,) * 3, (1.0,) * 3),
    "Caffe's mean in 0..255": (1.0, (123.68, 116.779, 103.939), (1.0,) * 3),
}
CROP_PCT = 0.875
# From the first K images to their pixels (K, H, W, 3), under another resize and crop.
Crop = Callable[[int], Array]
# From the first K images to logits (K, C).
Setups = dict[str, Callable[[int], Array]]


def other_crops(declared: Preprocessing) -> dict[str, Preprocessing]:
    """Usual ways to resize and crop to the pixels that a file takes: what each does, and its recipe."""
    height, width = declared.crop_size
    crop = f"crop to {height}x{width}"
    edge = round(max(declared.crop_size) / CROP_PCT)
    recipes = {
        f"resize to {edge}, {crop}": replace(declared, resize_mode="shortest", resize_size=(edge, edge)),
        f"resize to {height}x{width} without a crop": replace(
            declared, resize_mode="exact", resize_size=declared.crop_size
        ),
    }
    if height == width:
        recipes[f"resize to {height}, {crop}"] = replace(
            declared, resize_mode="shortest", resize_size=declared.crop_size
        )
    return {name: recipe for name, recipe in recipes.items() if recipe != declared}


def other_setups(candidate: Candidate, model: Model, pixels: Array, crops: Mapping[str, Crop], size: int) -> Setups:
    """Other ways to feed the file, ``size`` images at a time.

    Args:
        candidate: What is declared.
        model: The candidate, opened.
        pixels: See `headsmith.evaluate.zoo.sanity_probe.probe`.
        crops: See there.
        size: Images a run.
    """
    if candidate.head_only:
        return {}
    runs: dict[str, Callable[[Array], Array]] = {
        "the channel order BGR": lambda rows: model.run(rows[..., ::-1]).logits
    }
    if isinstance(model, ExternalOnnxModel) and candidate.preprocessing is not None:
        runs = {name: partial(_run, model, recipe) for name, recipe in _recipes(candidate.preprocessing, model)}
    found: Setups = {name: partial(_fed, run, pixels, size) for name, run in runs.items()}
    return found | {name: partial(_cropped, model, crop, size) for name, crop in crops.items()}


def logits_of(run: Callable[[Array], Array], pixels: Array, size: int) -> Array:
    """The logits of all pixels, ``size`` at a time."""
    return np.concatenate([run(pixels[start : start + size]) for start in range(0, len(pixels), size)])


def _fed(run: Callable[[Array], Array], pixels: Array, size: int, count: int) -> Array:
    return logits_of(run, pixels[:count], size)


def _cropped(model: Model, crop: Crop, size: int, count: int) -> Array:
    return logits_of(lambda rows: model.run(rows).logits, crop(count), size)


def _run(model: ExternalOnnxModel, recipe: Preprocessing, pixels: Array) -> Array:
    return model.answer(model.fed_by(recipe, pixels)).logits


def _recipes(declared: Preprocessing, model: ExternalOnnxModel) -> Iterator[tuple[str, Preprocessing]]:
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


def other_orders(names: ClassNames) -> dict[str, Array]:
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

"""The accuracy on ImageNet that a library itself states of its weights."""

import csv
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .libraries import TIMM, TORCHVISION

_RESULTS = Path("results", "results-imagenet.csv")


class Accuracy(NamedTuple):
    """What a library states.

    Attributes:
        top1: In per cent.
        top5: The same among five answers.
        source: Where that stands.
    """

    top1: float
    top5: float
    source: str


def imagenet_accuracy(spec: str) -> Accuracy | None:
    """What torchvision says of its weights, and timm in its ``results`` where it is installed with these (a clone).

    Args:
        spec: See `headsmith.models.load_backbone`.

    Returns:
        Nothing for the packaged weights, ONNX files, and weights of which the library says nothing.
    """
    if spec.startswith(TORCHVISION):
        return _torchvision(spec.removeprefix(TORCHVISION))
    if spec.startswith(TIMM):
        import timm

        name = spec.removeprefix(TIMM)
        config = timm.get_pretrained_cfg(name)
        tag = config.tag if config else ""
        return _timm(Path(timm.__file__).parent.parent).get(f"{name.partition('.')[0]}.{tag}" if tag else name)
    return None


def _torchvision(name: str) -> Accuracy | None:
    import torchvision

    name, _, tag = name.partition("/")
    weights = torchvision.models.get_model_weights(name)[tag or "DEFAULT"]
    with suppress(KeyError):
        metrics = weights.meta["_metrics"]["ImageNet-1K"]
        return Accuracy(metrics["acc@1"], metrics["acc@5"], f"torchvision {torchvision.__version__}, {weights}")
    return None


@cache
def _timm(folder: Path) -> dict[str, Accuracy]:
    """The rows of timm's table, which its wheel does not carry."""
    path = folder / _RESULTS
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {row["model"]: Accuracy(float(row["top1"]), float(row["top5"]), f"timm, {path.name}") for row in rows}

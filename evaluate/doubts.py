"""What makes a measurement doubtful, in words."""

from pathlib import Path
from typing import Any

from ..export.bundle.bundle import Bundle
from ..trainer.features.images.samples import split_called
from .measurement import Measurement
from .metrics import Summary

DOMINANT, BALANCED = 0.9, 0.5


def doubts(summary: Summary, measured: Measurement, trained_on: bool) -> list[str]:
    """Look for what is rarely right.

    Args:
        summary: The figures.
        measured: The pass that they come from.
        trained_on: Whether the inputs lie in the training split of the classifier's own source.
    """
    found, classes, top1 = [], summary.num_classes, summary.top.get(1)
    if trained_on:
        found.append("the head was trained on these images; measure on others")
    if top1 is not None and classes > 1 and top1.low <= 1 / classes:
        found.append(f"chance level: top-1 cannot be told from guessing among {classes} classes")
    if summary.predicted_share > DOMINANT and summary.label_share is not None and summary.label_share < BALANCED:
        found.append(f"one class takes {summary.predicted_share:.0%} of the predictions")
    if measured.not_finite:
        found.append(f"{measured.not_finite} inputs have NaN or infinite logits")
    if measured.inconsistent:
        found.append(f"{measured.inconsistent} inputs have topk_indices against the file's own logits")
    return found


def was_trained_on(data: str, bundle: Bundle | None) -> bool:
    """Whether ``data`` lies in the training split of the folder that a bundle's features came from, if it is known."""
    origin: dict[str, Any] | None = bundle.manifest["features"]["source"] if bundle else None
    path = Path(data)
    if origin is None or not path.is_relative_to(origin["source"]):
        return False
    inside = path.relative_to(origin["source"]).parts
    return bool(inside) and split_called(inside[0]) == "train"

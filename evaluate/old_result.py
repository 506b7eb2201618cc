"""What an evaluation says."""

from dataclasses import dataclass
from typing import Any

DOMINANT, BALANCED = 0.9, 0.5


@dataclass(frozen=True)
class EvalResult:
    """One file, measured on one held-out set.

    Attributes:
        model: The bundle's folder, or where on the hub it is.
        file: The file that was run.
        n: Inputs that were scored.
        top1: Share of inputs whose label has the highest logit.
        top1_interval: 95 % Wilson interval of ``top1``.
        top5: The same for the five highest; ``None`` where there are fewer than five classes.
        top5_interval: 95 % Wilson interval of ``top5``.
        images_per_second: Through the session, warmed up; decoding and layout are not counted.
        images_per_second_overall: With decoding, which runs beside the session.
        load_seconds: Opening the file.
        first_run_seconds: The first batch, which is not in ``images_per_second``.
        batch_size: Inputs a run.
        provider: Execution provider that ran.
        provider_options: Its options.
        threads: Threads inside an operator.
        runtime: Name and version of the runtime.
        flags: What makes the result doubtful, in words.
        not_finite: Inputs with NaN or infinite logits; NaN counts as wrong.
        unreadable: Id and reason of what was left out.
        out: Folder with these results as JSON and CSV.
        num_classes: C, the number of logits.
        image_size: Crop edge in pixels; ``None`` for a head alone.
        crop_pct: Crop edge over resized edge; ``None`` where nobody knows the backbone of the features.
        interpolation: Of the resize, or ``None``.
        parameters: Numbers in backbone and head.
        data: Where the inputs come from.
        data_sha256: Fingerprint of classes, ids, labels and contents.
        model_sha256: Hash of the file.
        labels_sha256: Hash of the class names in order.
        preprocessing_sha256: Hash of the recipe.
        versions: Python and packages.
        created: UTC time.
    """

    model: str
    file: str
    n: int
    top1: float
    top1_interval: tuple[float, float]
    top5: float | None
    top5_interval: tuple[float, float] | None
    images_per_second: float
    images_per_second_overall: float
    load_seconds: float
    first_run_seconds: float
    batch_size: int
    provider: str
    provider_options: dict[str, str]
    threads: int
    runtime: str
    flags: list[str]
    not_finite: int
    unreadable: list[dict[str, str]]
    num_classes: int
    image_size: int | None
    crop_pct: float | None
    interpolation: str | None
    parameters: int
    data: str
    data_sha256: str
    model_sha256: str
    labels_sha256: str
    preprocessing_sha256: str
    out: str
    versions: dict[str, str]
    created: str

    def row(self) -> dict[str, Any]:
        """A row of ``results.csv``: timm's columns first, accuracies in per cent, parameters in millions."""
        top5 = None if self.top5 is None else 100 * self.top5
        columns = {
            "model": self.model,
            "img_size": self.image_size,
            "top1": _round(100 * self.top1),
            "top1_err": _round(100 - 100 * self.top1),
            "top5": _round(top5),
            "top5_err": None if top5 is None else _round(100 - top5),
            "param_count": round(self.parameters / 1e6, 2),
            "crop_pct": None if self.crop_pct is None else round(self.crop_pct, 3),
            "interpolation": self.interpolation,
            "n": self.n,
        }
        for name, interval in (("top1", self.top1_interval), ("top5", self.top5_interval)):
            low, high = interval or (None, None)
            columns |= {f"{name}_low": _percent(low), f"{name}_high": _percent(high)}
        for name in _REST:
            columns[name] = getattr(self, name)
        return columns | {"unreadable": len(self.unreadable), "flags": "; ".join(self.flags)}


_REST = (
    "num_classes",
    "images_per_second",
    "images_per_second_overall",
    "load_seconds",
    "first_run_seconds",
    "batch_size",
    "provider",
    "threads",
    "runtime",
    "not_finite",
    "file",
    "model_sha256",
    "data",
    "data_sha256",
    "labels_sha256",
    "preprocessing_sha256",
    "created",
)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 4)


def doubts(
    *,
    top1_low: float,
    num_classes: int,
    predicted_share: float,
    label_share: float,
    not_finite: int,
    inconsistent: int,
    trained_on: bool,
) -> list[str]:
    """What makes a measurement doubtful, in words.

    Args:
        top1_low: Lower end of the interval of top-1.
        num_classes: C.
        predicted_share: Share of the inputs that get the most predicted class.
        label_share: Share of the inputs that have the most frequent label.
        not_finite: Inputs with NaN or infinite logits.
        inconsistent: Inputs whose ``topk_indices`` contradict the file's own logits.
        trained_on: Whether the inputs lie in the training split of the classifier's own source.
    """
    found = []
    if trained_on:
        found.append("the head was trained on these images; measure on others")
    if num_classes > 1 and top1_low <= 1 / num_classes:
        found.append(f"chance level: top-1 cannot be told from guessing among {num_classes} classes")
    if predicted_share > DOMINANT and label_share < BALANCED:
        found.append(f"one class takes {predicted_share:.0%} of the predictions")
    if not_finite:
        found.append(f"{not_finite} inputs have NaN or infinite logits")
    if inconsistent:
        found.append(f"{inconsistent} inputs have topk_indices against the file's own logits")
    return found

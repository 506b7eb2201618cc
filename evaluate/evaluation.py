"""Measure the exported file: accuracy with its uncertainty, and speed, under onnxruntime."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..export.accuracy import top_k
from ..export.bundle import Bundle
from ..export.formats import FORMATS
from ..export.held_out import HeldOut, held_out_features, held_out_images
from ..export.runtime import Array, Model
from ..models.environment import versions
from ..models.errors import InputError
from ..trainer.features.samples import split_called
from .measurement import Measurement, measure
from .old_result import EvalResult, doubts
from .writing import write_results

FILE = FORMATS["onnx"].file


def evaluate_classifier(
    bundle: str | Path | Bundle,
    *,
    data: str | Path,
    out: str | Path | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    provider: str = "cpu",
    batch_size: int = 64,
    threads: int | None = None,
    save_logits: bool = False,
    strict: bool = False,
) -> EvalResult:
    """Run a bundle's ONNX file on held-out inputs under onnxruntime and score its logits.

    Classes are matched by name. Equal logits are ordered by class index, the lower first; a row with NaN is wrong.
    Decoding runs in threads beside the session and is not counted in its images a second.

    Args:
        bundle: A bundle, its folder, or ``hf:USER/REPO`` on the Hugging Face hub.
        data: Held-out images: a folder of class folders, a source with a test split, or the training's own source,
            of which the held-out part is taken. For a head alone: a feature set.
        out: Folder for ``results.json``, ``results.csv`` and ``predictions.csv``; ``None`` is ``results/NAME`` in the
            working directory, NAME the bundle's. Results that it holds are replaced.
        image_column: Image column of a `datasets` source.
        label_column: Label column of a `datasets` source.
        provider: ``cpu`` or ``cuda``; it runs, or it is an error.
        batch_size: Inputs a run of the session.
        threads: Threads of onnxruntime; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.
        save_logits: Also write ``logits.npz`` (``logits`` float32 ``(N, C)``, ``labels``, ``ids``) into ``out``.
        strict: Stop at an unreadable image instead of leaving it out.

    Returns:
        The measurement.

    Raises:
        InputError: A damaged bundle, a provider that does not run here, data without a held-out image, or a class
            that the classifier does not know.
    """
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    model = bundle.open("onnx", provider=provider, threads=threads)
    if bundle.head_only:
        held_out: HeldOut = held_out_features(data, model.metadata, bundle.class_names)
    else:
        held_out = held_out_images(
            data,
            bundle.manifest,
            bundle.class_names,
            model.metadata.prepare,
            image_column=image_column,
            label_column=label_column,
            strict=strict,
        )
    measured = measure(model, held_out, batch_size, keep_logits=save_logits)
    folder = Path("results", bundle.name) if out is None else Path(out)
    result = _result(bundle, model, held_out, measured, batch_size, folder)
    write_results(folder, result, measured, bundle.class_names)
    return result


def _result(
    bundle: Bundle, model: Model, held_out: HeldOut, measured: Measurement, batch_size: int, folder: Path
) -> EvalResult:
    classes, n = len(bundle.class_names), len(measured.ids)
    top1, top5 = top_k(measured.ranks, 1, classes), top_k(measured.ranks, 5, classes)
    if top1 is None:
        raise InputError(f"{bundle.path}: a classifier without classes")
    recipe = None if bundle.manifest["preprocessing"] is None else bundle.preprocessing
    return EvalResult(
        model=bundle.source,
        file=FILE,
        n=n,
        top1=top1.value,
        top1_interval=(top1.low, top1.high),
        top5=top5.value if top5 else None,
        top5_interval=(top5.low, top5.high) if top5 else None,
        images_per_second=n / measured.session_seconds,
        images_per_second_overall=n / measured.seconds,
        load_seconds=model.load_seconds,
        first_run_seconds=measured.first_run_seconds,
        batch_size=batch_size,
        provider=model.settings["provider"],
        provider_options=model.settings["provider_options"],
        threads=model.settings["threads"],
        runtime=model.settings["runtime"],
        flags=doubts(
            top1_low=top1.low,
            num_classes=classes,
            predicted_share=_largest_share(measured.topk_indices[:, 0]),
            label_share=_largest_share(measured.labels),
            not_finite=measured.not_finite,
            inconsistent=measured.inconsistent,
            trained_on=_trained_on(Path(held_out.name), bundle.manifest["features"]["source"]),
        ),
        not_finite=measured.not_finite,
        unreadable=list(held_out.unreadable),
        num_classes=classes,
        image_size=None if bundle.head_only else bundle.preprocessing.crop_size[0],
        crop_pct=recipe.crop_pct if recipe else None,
        interpolation=recipe.interpolation if recipe else None,
        parameters=bundle.manifest["parameters"],
        data=held_out.name,
        data_sha256=held_out.fingerprint,
        model_sha256=bundle.manifest["files"][FILE]["sha256"],
        labels_sha256=bundle.manifest["labels_sha256"],
        preprocessing_sha256=bundle.manifest["preprocessing_sha256"],
        out=str(folder),
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _trained_on(data: Path, origin: dict[str, Any] | None) -> bool:
    """Whether ``data`` lies in the training split of the folder that the features came from, if that is known."""
    if origin is None:
        return False
    source = Path(origin["source"])
    inside = data.relative_to(source).parts if data.is_relative_to(source) else ()
    return bool(inside) and split_called(inside[0]) == "train"


def _largest_share(indices: Array) -> float:
    return float(np.bincount(indices).max() / len(indices))

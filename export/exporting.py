"""From a run to a bundle: write the files, prove them, and only then let them be seen."""

import math
import shutil
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..models.backbone import Backbone, backbone_from_record
from ..models.environment import versions
from ..models.errors import InputError
from ..models.files import new_folder, sha256_file, write_json
from ..models.preprocessing import Preprocessing
from ..trainer.features.feature_set import FeatureSet
from ..trainer.run import Run
from .bundle import CARD, FORMAT, FORMAT_VERSION, LABELS, MANIFEST, PARITY, Bundle, write_labels
from .card import model_card
from .classifier import Classifier
from .formats import FORMATS, check_formats, open_model
from .gates import Limits
from .held_out import HeldOut, HeldOutImages, held_out_features, held_out_images, training_images
from .labels import check_labels
from .lowering import FULL, FULL_FILE, lower_file
from .metadata import ENCODED, FEATURES, Metadata, identity
from .onnx_format import OPSET
from .parity import TOLERANCE
from .precision import Precision
from .proof import Proof, compare_features, prove
from .reference import REFERENCE, Recorder
from .resizing import compare_with_pil
from .temperature import Tempered, calibration_of


def export_classifier(
    run: str | Path | Run,
    *,
    out: str | Path,
    formats: Sequence[str] = ("onnx",),
    head_only: bool = False,
    input_format: str = "float-nchw",
    resize: bool = False,
    probabilities: bool = False,
    fp16: bool = False,
    fp32_head: bool = False,
    fp16_input: bool = False,
    int8: bool = False,
    int8_dynamic: bool = False,
    calibration_images: int = 512,
    max_top1_drop: float = 1.0,
    max_top5_drop: float = 1.0,
    max_flips: int | None = None,
    calibrate: bool = False,
    opset: int = OPSET,
    data: str | Path | FeatureSet | None = None,
    batch_size: int = 64,
    tolerance: float = TOLERANCE,
    overwrite: bool = False,
) -> Bundle:
    """Export a trained head as a classifier, and prove that every file answers as the Python module does.

    Each file is opened again and run on real held-out images. A flip of the best class, or of the set of the five
    best, fails the export unless it is a tie or on a margin within ``tolerance``; then nothing is left in ``out``.

    Args:
        run: A run, or its folder.
        out: The bundle's folder.
        formats: ``onnx`` (``model.onnx``); ``torchscript`` (``model.ts``, traced; deprecated in torch); ``pt2``
            (``model.pt2``, torch's exported program); ``timm`` (``model.safetensors`` and ``config.json``, for
            ``timm.create_model("local-dir:OUT")``); ``triton`` (``triton/NAME/``, a model repository of NVIDIA's
            Triton Inference Server around the ONNX file).
        head_only: Features to logits, without the backbone.
        input_format: ``float-nchw``: float32 RGB ``(N, 3, H, W)`` in 0..255; ``uint8-nhwc``: uint8 RGB
            ``(N, H, W, 3)``; ``encoded``: the bytes of one JPEG or PNG file, uint8, resized and cropped inside (ONNX
            with onnxruntime-extensions).
        resize: With ``uint8-nhwc``: images of any size, resized and cropped inside the file.
        probabilities: A further output, the softmax of the logits (not of ``timm``).
        fp16: Bring ``model.onnx`` to float16; its outputs, preprocessing and top-k stay float32.
        fp32_head: With ``fp16``: the head stays float32 too.
        fp16_input: With ``fp16``: a float32 input becomes a float16 one.
        int8: Quantise ``model.onnx`` to int8, with ranges taken from training inputs.
        int8_dynamic: Quantise its matrix products alone, with ranges taken anew from every batch: for heads.
        calibration_images: With ``int8``: how many training inputs, drawn at random.
        max_top1_drop: What a lower precision may lose in top-1 on the validation inputs, in percentage points, against
            the float32 file.
        max_top5_drop: The same in top-5.
        max_flips: How many validation inputs may get another best class; ``None`` for no limit.
        calibrate: Fit a temperature on validation and fold it into the weights of the last layer: probabilities change,
            the order of the classes stays.
        opset: The ONNX operator set.
        data: Held-out images (with ``head_only``: a feature set) for the proof; by default the run's test split.
        batch_size: Images a batch of the proof.
        tolerance: In logits: a flip on a margin up to this is excused.
        overwrite: Replace an existing bundle.

    Returns:
        The bundle, opened again with its hashes checked.

    Raises:
        InputError: A part of the run is missing, its backbone or images cannot be had, or an option is unknown.
        ExportError: A network that cannot be written with a free batch axis.
        ParityError: A file that answers differently.
        GateError: A file in lower precision that loses more than it may.
    """
    run = run if isinstance(run, Run) else Run.load(run)
    if not 0 <= tolerance < math.inf:
        raise InputError(f"--tolerance: {tolerance} found, expected a number of logits, 0 or more")
    metadata = _metadata(run, FEATURES if head_only else input_format, resize)
    check_formats(tuple(formats), metadata)
    precision = Precision.chosen(
        fp16=fp16,
        fp32_head=fp32_head,
        fp16_input=fp16_input,
        int8=int8,
        int8_dynamic=int8_dynamic,
        calibration_images=calibration_images,
    )
    if precision.lower and "onnx" not in formats:
        raise InputError(f"--{precision.kind}: is for model.onnx; add --format onnx")
    limits = Limits(max_top1_drop, max_top5_drop, max_flips)
    inputs = partial(_inputs, run, metadata, data)
    with new_folder(out, replace=PARITY if overwrite else None) as folder:
        held_out = _held_out(run, metadata, data)
        backbone = None if head_only else backbone_from_record(run.record["backbone"])
        calibration = calibration_of(run.head, _trained_features(run)) if calibrate else None
        head = Tempered(run.head, calibration.temperature) if calibration else run.head
        classifier = Classifier(head, backbone, input_format, resize=resize, probabilities=probabilities)
        cached = _compare_features(run, classifier, metadata, held_out) if data is None else None
        written = classifier.folded()
        write = partial(_write, written, metadata, folder, Path(out).name, {"opset": opset})
        files = write({"onnx"} & set(formats))
        gate = lower_file(folder / files[0], precision, limits, inputs, batch_size) if precision.lower else None
        files += write(set(formats) - {"onnx"})
        models = {file: open_model(folder / file) for file in (*files, *([FULL_FILE] if gate else []))}
        recorder = Recorder(len(held_out))
        compared = prove(classifier, models, held_out, batch_size, tolerance, recorder)
        recorder.save(folder / REFERENCE)
        proofs = {file: compared[file] for file in files}
        manifest = _manifest(run, metadata, written, backbone, proofs, held_out)
        manifest["precision"] = gate and gate.summary()
        manifest["calibration"] = calibration and asdict(calibration)
        if metadata.resize and isinstance(held_out, HeldOutImages):
            manifest["resize"] = compare_with_pil(classifier, metadata, held_out, tolerance).to_dict()
        write_labels(list(metadata.labels), folder / LABELS)
        write_json(folder / PARITY, _parity(compared, held_out, cached) | {"precision": gate and gate.to_dict()})
        (folder / CARD).write_text(model_card(Path(out).name, manifest, metadata, proofs), encoding="utf-8")
        shutil.rmtree(folder / FULL, ignore_errors=True)
        manifest["files"] = {str(path.relative_to(folder)): _file(path) for path in _all_files(folder)}
        write_json(folder / MANIFEST, manifest)
    return Bundle.load(out)


def _metadata(run: Run, input_format: str, resize: bool) -> Metadata:
    backbone = run.record["backbone"]
    return Metadata(
        labels=check_labels(run.class_names, run.head.num_classes, str(run.path)),
        input_format=input_format,
        preprocessing=backbone and Preprocessing.from_dict(backbone["preprocessing"]),
        backbone=identity(backbone, run.head.in_features),
        feature_set=run.record["features"]["fingerprint"],
        head=run.head.kind,
        resize=resize or input_format == ENCODED,
    )


def _held_out(run: Run, metadata: Metadata, data: str | Path | FeatureSet | None) -> HeldOut:
    features = run.record["features"]
    if metadata.head_only:
        if data is None and not Path(features["path"]).exists():
            raise InputError(
                f"{features['path']}: the feature set that the head was trained on is not there; name one with --data"
            )
        return held_out_features(data or features["path"], metadata, metadata.labels)
    if isinstance(data, FeatureSet):
        raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")
    return held_out_images(data, run.record, metadata.labels, metadata.prepare)


def _inputs(run: Run, metadata: Metadata, data: str | Path | FeatureSet | None, split: str) -> HeldOut:
    """The train or val split of what the head was trained on."""
    if metadata.head_only:
        return held_out_features(data or run.record["features"]["path"], metadata, metadata.labels, split)
    if isinstance(data, FeatureSet):
        raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")
    return training_images(split, data, run.record, metadata.labels, metadata.prepare)


def _trained_features(run: Run) -> FeatureSet:
    record = run.record["features"]
    try:
        features = FeatureSet.load(record["path"])
    except InputError as error:
        raise InputError(f"--calibrate: fits on the features that the head was trained on, but {error}") from None
    if features.fingerprint != record["fingerprint"]:
        raise InputError(f"--calibrate: {features.path} has changed since the head was trained on it; train again")
    return features


def _compare_features(run: Run, classifier: Classifier, metadata: Metadata, held_out: HeldOut) -> float | None:
    """See `compare_features`; ``None`` for a head alone, and where the run's feature set is not there any more."""
    record = run.record["features"]
    if not isinstance(held_out, HeldOutImages) or not Path(record["path"]).is_dir():
        return None
    cached = FeatureSet.load(record["path"])
    if cached.fingerprint != record["fingerprint"]:
        return None
    by_pil = replace(held_out, preprocessing=metadata.recipe)
    return compare_features(classifier.without_resize(), metadata, by_pil, cached)


def _write(
    classifier: Classifier,
    metadata: Metadata,
    folder: Path,
    name: str,
    options: dict[str, Any],
    formats: Collection[str],
) -> list[str]:
    """Write a file a format; their names, relative to ``folder``, in the order of `FORMATS`."""
    chosen = [known for key, known in FORMATS.items() if key in formats]
    for format in chosen:
        path = folder / format.named(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        format.write(classifier, metadata, path, **{key: options[key] for key in format.options})
    return [format.named(name) for format in chosen]


def _manifest(
    run: Run,
    metadata: Metadata,
    classifier: Classifier,
    backbone: Backbone | None,
    proofs: dict[str, Proof],
    held_out: HeldOut,
) -> dict[str, Any]:
    shape, kind = classifier.example_shape, str(classifier.example_dtype).removeprefix("torch.")
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "labels": list(metadata.labels),
        "labels_sha256": metadata.labels_sha256,
        "preprocessing": metadata.preprocessing and metadata.preprocessing.to_dict(),
        "preprocessing_sha256": metadata.preprocessing_sha256,
        "input": {
            "name": metadata.input_name,
            "format": metadata.input_format,
            "dtype": kind,
            "shape": _input_shape(metadata, shape),
            "resize": metadata.resize,
        },
        "outputs": classifier.outputs,
        "k": classifier.k,
        "parameters": sum(parameter.numel() for parameter in classifier.head.parameters())
        + (0 if backbone is None else backbone.parameter_count),
        "backbone": run.record["backbone"],
        "head": {
            "kind": run.head.kind,
            "options": run.head.options,
            "in_features": run.head.in_features,
            "num_classes": run.head.num_classes,
            "sha256": run.record["head_sha256"],
        },
        "training": asdict(run.config),
        "results": run.record["results"],
        "features": run.record["features"],
        "held_out": {
            "fingerprint": held_out.fingerprint,
            "n": len(held_out) - len(held_out.unreadable),
            "unreadable": held_out.unreadable,
        },
        "accuracy": {
            file: {"top1": asdict(proof.top1), "top5": asdict(proof.top5) if proof.top5 else None}
            for file, proof in proofs.items()
        },
        "parity": {file: proof.parity.summary() for file, proof in proofs.items()},
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _input_shape(metadata: Metadata, shape: tuple[int, ...]) -> list[str | int]:
    if metadata.encoded:
        return ["bytes"]
    return ["batch", "height", "width", 3] if metadata.resize else ["batch", *shape]


def _parity(proofs: dict[str, Proof], held_out: HeldOut, cached: float | None) -> dict[str, Any]:
    return {
        "held_out": {"fingerprint": held_out.fingerprint, "n": len(held_out), "unreadable": held_out.unreadable},
        "cached_features_relative_difference": cached,
        "files": {
            file: proof.parity.to_dict() | {"settings": proof.settings, "top1": asdict(proof.top1)}
            for file, proof in proofs.items()
        },
    }


def _all_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _file(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_file(path), "bytes": path.stat().st_size}

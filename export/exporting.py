"""From a run to a bundle: write the files, prove them, and only then let them be seen."""

import math
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.arguments import typed
from ..core.errors import InputError
from ..core.files import new_folder, write_json
from ..models.backbone import backbone_from_record
from ..models.preprocessing import Preprocessing
from ..trainer.features.feature_set import FeatureSet
from ..trainer.run import Run
from .bundle.bundle import CARD, LABELS, MANIFEST, PARITY, Bundle, write_labels
from .bundle.card import model_card
from .bundle.manifest import bundle_manifest, file_hashes, parity_record
from .classifier import TOP_K, Classifier
from .formats.formats import FORMATS, check_formats, open_model
from .formats.onnx_format import OPSET
from .labels import check_labels
from .metadata import ENCODED, FEATURES, FLOAT_NCHW, Metadata, identity
from .precision.gates import Limits
from .precision.lowering import FULL, FULL_FILE, ONNX, lower_file
from .precision.precision import Precision
from .proof.held_out import HeldOut, HeldOutImages
from .proof.proof import compare_features, prove
from .proof.reference import REFERENCE, Recorder
from .proof.resizing import compare_with_pil
from .proof.run_inputs import RunInputs
from .temperature import Calibration, Tempered, calibration_of


@typed
def export_classifier(
    run: str | Path | Run,
    *,
    out: str | Path,
    formats: Sequence[str] = ("onnx",),
    head_only: bool = False,
    input_format: str = FLOAT_NCHW,
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
    weak_gate: bool = False,
    calibrate: bool = False,
    opset: int = OPSET,
    data: str | Path | FeatureSet | None = None,
    batch_size: int = 64,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> Bundle:
    """Export a trained head as a classifier, and prove that every file answers as the Python module does.

    Each file is opened again and run on real held-out images, and on a few made-up ones. A logit that differs by more
    than rounding explains, NaN or infinity in any output, a flip of the best class or of the set of the five best on a
    margin that rounding cannot bridge: each of them fails the export, and nothing is left in ``out``.

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
        calibration_images: How many training inputs, drawn at random, the ranges of activations are taken from: the
            scales of ``int8``, and whether ``fp16`` overflows.
        max_top1_drop: What a lower precision may lose in top-1 on the validation inputs, in percentage points, against
            the float32 file.
        max_top5_drop: The same in top-5.
        max_flips: How many validation inputs may get another best class; ``None`` for no limit.
        weak_gate: Go on where the validation inputs are so few that one of them is more than ``max_top1_drop`` or
            ``max_top5_drop``.
        calibrate: Fit a temperature on validation and fold it into the weights of the last layer: probabilities change,
            the order of the classes stays.
        opset: The ONNX operator set.
        data: Held-out images (with ``head_only``: a feature set) for the proof; by default the run's test split.
        batch_size: Images a batch of the proof (of features at least 1024 rows are one).
        tolerance: In logits: a flip on a margin up to this is excused, and no logit may differ by more, times the
            largest logit where that is above 1. ``None`` measures both: 30 times what the module's logits differ by
            from those of float64, and at most 0.001 of the largest logit; a flip is excused on twice that.
        overwrite: Replace an existing bundle.

    Returns:
        The bundle, opened again with its hashes checked.

    Raises:
        InputError: A part of the run is missing, its backbone or images cannot be had, an option is unknown, or one
            validation input is more than a lower precision may lose.
        ExportError: A network that cannot be written with a free batch axis.
        ParityError: A file that answers differently.
        GateError: A file in lower precision that loses more than it may.
    """
    run = run if isinstance(run, Run) else Run.load(run)
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise InputError(f"--tolerance: {tolerance} found, expected a number of logits, 0 or more")
    if batch_size < 1:
        raise InputError(f"--batch-size: {batch_size} found, expected 1 or more")
    if head_only and input_format != FLOAT_NCHW:
        raise InputError(f"--input {input_format}: found with --head-only, whose input is features; leave it out")
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
    precision.check(formats, metadata)
    limits = Limits(max_top1_drop, max_top5_drop, max_flips, weak_gate)
    with new_folder(out, replace=PARITY if overwrite else None) as folder:
        inputs = RunInputs(run, metadata, data)
        held_out = inputs.held_out()
        splits = [inputs.split(split) for split in ("train", "val")] if precision.lower else []
        if splits and (unseen := limits.unseen(len(splits[1]), top5=len(metadata.labels) >= TOP_K)):
            raise InputError(f"--{precision.kind}: {unseen}")
        backbone = None if head_only else backbone_from_record(run.record["backbone"])
        calibration = _calibration(run, inputs) if calibrate else None
        head = Tempered(run.head, calibration.temperature) if calibration else run.head
        classifier = Classifier(head, backbone, input_format, resize=resize, probabilities=probabilities)
        written = classifier.folded()
        for format in formats:
            FORMATS[format].check(written, metadata)
        cached = _compare_features(inputs, classifier, metadata, held_out) if data is None else None
        write = partial(_write, written, metadata, folder, Path(out).name, {"opset": opset})
        files = write({"onnx"} & set(formats))
        gate = None
        if precision.lower:
            training, validation = splits
            gate = lower_file(folder / ONNX, precision, limits, training, validation, batch_size)
        files += write(set(formats) - {"onnx"})
        models = {file: open_model(folder / file) for file in (*files, *([FULL_FILE] if gate else []))}
        recorder = Recorder(len(held_out))
        compared = prove(classifier, metadata, models, held_out, batch_size, tolerance, recorder)
        recorder.save(folder / REFERENCE, metadata)
        proofs = {file: compared[file] for file in files}
        manifest = bundle_manifest(
            run,
            metadata,
            written,
            backbone,
            proofs,
            held_out,
            gate=gate,
            calibration=calibration,
            half_input=precision.fp16_input,
        )
        if metadata.resize and isinstance(held_out, HeldOutImages):
            manifest["resize"] = compare_with_pil(classifier, metadata, held_out, tolerance).to_dict()
        write_labels(list(metadata.labels), folder / LABELS)
        write_json(folder / PARITY, parity_record(compared, held_out, cached, gate))
        (folder / CARD).write_text(model_card(Path(out).name, manifest, metadata, proofs), encoding="utf-8")
        shutil.rmtree(folder / FULL, ignore_errors=True)
        manifest["files"] = file_hashes(folder)
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


def _calibration(run: Run, inputs: RunInputs) -> Calibration:
    try:
        return calibration_of(run.head, inputs.trained_features())
    except InputError as error:
        raise InputError(f"--calibrate: fits on the features that the head was trained on, but {error}") from None


def _compare_features(inputs: RunInputs, classifier: Classifier, metadata: Metadata, held_out: HeldOut) -> float | None:
    """See `compare_features`; ``None`` for a head alone, and where the run's feature set is not there any more."""
    if not isinstance(held_out, HeldOutImages) or (cached := inputs.cached_features()) is None:
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

"""From a run to a bundle: write the files, prove them, and only then let them be seen."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..core.arguments import typed
from ..core.errors import InputError
from ..core.files import new_folder
from ..core.records import write_record
from ..core.settings import of_keywords
from ..models.backbone import backbone_from_record
from ..trainer.features.feature_set import FeatureSet
from ..trainer.features.images.image_set import ImageSet
from ..trainer.run import Run
from .bundle.bundle import CARD, PARITY, Bundle
from .bundle.card import model_card
from .bundle.manifest import MANIFEST, Calibration
from .bundle.manifest_writer import Evidence, bundle_manifest, file_records, write_parity
from .classifier import Classifier
from .formats.extensions import extensions
from .formats.registry import FORMATS
from .held_out import HeldOutImages
from .label_agreement import LABELS, write_labels
from .metadata import Metadata, check_labels, describe, identity
from .options import ENCODED, FEATURES, FLOAT_NCHW, FP32, OPSET, ExportOptions
from .parity.proof_at_export import prove
from .parity.python_module import PythonModule
from .parity.training_check import changes, compare_features, compare_with_pil
from .parity.verification_data import REFERENCE
from .precision.gated_lowering import FULL, FULL_FILE, ONNX, lower_file
from .precision.gates import unseen_drop
from .runtime import open_model
from .temperature import TemperatureScaled, calibration_of
from .training_source import RunInputs


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
    precision: str = FP32,
    fp32_head: bool = False,
    max_drop: float = 1.0,
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
        precision: What ``model.onnx`` computes in: ``fp32``; ``fp16``, where outputs, preprocessing and top-k stay
            float32; ``int8``, with ranges taken from 512 training inputs, drawn at random; ``int8-dynamic``, matrix
            products alone, with ranges taken anew from every batch: for heads.
        fp32_head: With ``fp16``: the head stays float32 too.
        max_drop: What a lower precision may lose on the validation inputs against the float32 file, in percentage
            points of top-1 and of top-5.
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
    options = of_keywords(ExportOptions, locals())
    return export(run if isinstance(run, Run) else Run.load(run), Path(out), options)


def export(run: Run, out: Path, options: ExportOptions, images: ImageSet | None = None) -> Bundle:
    """`export_classifier` with its options as one, and images that are open already: see `held_out_images`."""
    metadata = _metadata(run, options)
    if metadata.encoded:
        extensions()
    with new_folder(out, replace=PARITY if options.overwrite else None) as folder:
        inputs = RunInputs(run, metadata, options.data, images)
        held_out = inputs.held_out()
        splits = [inputs.split(split) for split in ("train", "val")] if options.lower else []
        if splits and (unseen := unseen_drop(len(splits[1]), options.max_drop)):
            raise InputError(f"--precision {options.precision}: {unseen}")
        calibration = _calibration(run, inputs) if options.calibrate else None
        module = PythonModule(_classifier(run, calibration, options), metadata)
        written = PythonModule(module.classifier.folded(), metadata)
        for format in options.formats:
            FORMATS[format].check(*written)
        cached = compare_features(module, held_out, inputs.cached_features, inputs.pictures)
        files = {format: FORMATS[format].named(out.name) for format in FORMATS if format in options.formats}
        gate = None
        for format, file in files.items():  # ONNX is the first, and the Triton repository takes it as it is then
            _write(written, folder / file, format, options)
            if splits and file == ONNX:
                training, validation = splits
                gate = lower_file(folder / file, training, validation, options)
        replaced = [FULL_FILE] if gate else []
        models = {file: open_model(folder / file) for file in (*files.values(), *replaced)}
        proofs, recorder, accuracy = prove(module, models, held_out, options)
        warnings = changes(held_out, inputs.pictures)
        if options.data is None and not metadata.resize:
            accuracy.check(run.record.results.test, str(run.path), "; ".join(one.message for one in warnings))
        recorder.save(folder / REFERENCE, metadata)
        evidence = Evidence(
            {file: proofs[file] for file in files.values()},
            {file: proofs[file] for file in replaced},
            held_out,
            cached,
            gate,
            calibration,
            compare_with_pil(module, held_out, options)
            if metadata.resize and isinstance(held_out, HeldOutImages)
            else None,
            warnings,
        )
        manifest = bundle_manifest(run, written, evidence)
        write_labels(list(metadata.labels), folder / LABELS)
        (folder / CARD).write_text(model_card(out.name, manifest, metadata, evidence.proofs), encoding="utf-8")
        write_parity(folder / PARITY, evidence, manifest)
        shutil.rmtree(folder / FULL, ignore_errors=True)
        write_record(folder / MANIFEST, replace(manifest, files=file_records(folder)))
    return Bundle.load(out)


def _metadata(run: Run, options: ExportOptions) -> Metadata:
    backbone = run.record.backbone
    labels = check_labels(run.class_names, run.head.num_classes, str(run.path))
    return Metadata(
        labels=labels,
        descriptions=describe(labels),
        input_format=FEATURES if options.head_only else options.input_format,
        preprocessing=None if backbone is None else backbone.preprocessing,
        backbone=identity(backbone, run.head.in_features),
        feature_set=run.record.features.fingerprint,
        head=run.head.kind,
        resize=options.resize or options.input_format == ENCODED,
    )


def _calibration(run: Run, inputs: RunInputs) -> Calibration:
    try:
        return calibration_of(run.head, inputs.trained_features())
    except InputError as error:
        raise InputError(f"--calibrate: fits on the features that the head was trained on, but {error}") from None


def _classifier(run: Run, calibration: Calibration | None, options: ExportOptions) -> Classifier:
    backbone = None if options.head_only or run.record.backbone is None else backbone_from_record(run.record.backbone)
    head = TemperatureScaled(run.head, calibration.temperature) if calibration else run.head
    return Classifier(head, backbone, options.input_format, resize=options.resize, probabilities=options.probabilities)


def _write(written: PythonModule, path: Path, format: str, options: ExportOptions) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    FORMATS[format].write(*written, path, options)

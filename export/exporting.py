"""From a run to a bundle: write the files, prove them, and only then let them be seen."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
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
from .held_out import HeldOut, HeldOutImages, held_out_features, held_out_images
from .labels import check_labels
from .metadata import FEATURES, Metadata, identity
from .onnx_format import OPSET
from .parity import TOLERANCE
from .proof import Proof, compare_features, prove


def export_classifier(
    run: str | Path | Run,
    *,
    out: str | Path,
    formats: Sequence[str] = ("onnx",),
    head_only: bool = False,
    input_format: str = "float-nchw",
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
        formats: ``onnx`` (``model.onnx``) and ``torchscript`` (``model.ts``, traced; deprecated in torch).
        head_only: Features to logits, without the backbone.
        input_format: ``float-nchw``: float32 RGB ``(N, 3, H, W)`` in 0..255; ``uint8-nhwc``: uint8 RGB
            ``(N, H, W, 3)``.
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
    """
    run = run if isinstance(run, Run) else Run.load(run)
    check_formats(tuple(formats))
    if not 0 <= tolerance < math.inf:
        raise InputError(f"--tolerance: {tolerance} found, expected a number of logits, 0 or more")
    metadata = _metadata(run, FEATURES if head_only else input_format)
    with new_folder(out, replace=PARITY if overwrite else None) as folder:
        held_out = _held_out(run, metadata, data)
        backbone = None if head_only else backbone_from_record(run.record["backbone"])
        classifier = Classifier(run.head, backbone, input_format)
        cached = _compare_features(run, classifier, metadata, held_out) if data is None else None
        written = classifier.folded()
        files = _write(formats, written, metadata, folder, Path(out).name, {"opset": opset})
        models = {file: open_model(folder / file) for file in files}
        proofs = prove(classifier, models, held_out, batch_size, tolerance)
        manifest = _manifest(run, metadata, written, backbone, proofs, held_out)
        write_labels(list(metadata.labels), folder / LABELS)
        write_json(folder / PARITY, _parity(proofs, held_out, cached))
        (folder / CARD).write_text(model_card(Path(out).name, manifest, metadata, proofs), encoding="utf-8")
        manifest["files"] = {str(path.relative_to(folder)): _file(path) for path in _all_files(folder)}
        write_json(folder / MANIFEST, manifest)
    return Bundle.load(out)


def _metadata(run: Run, input_format: str) -> Metadata:
    backbone = run.record["backbone"]
    return Metadata(
        labels=check_labels(run.class_names, run.head.num_classes, str(run.path)),
        input_format=input_format,
        preprocessing=backbone and Preprocessing.from_dict(backbone["preprocessing"]),
        backbone=identity(backbone, run.head.in_features),
        feature_set=run.record["features"]["fingerprint"],
        head=run.head.kind,
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
    return held_out_images(data, run.record, metadata.labels, metadata.recipe)


def _compare_features(run: Run, classifier: Classifier, metadata: Metadata, held_out: HeldOut) -> float | None:
    """See `compare_features`; ``None`` for a head alone, and where the run's feature set is not there any more."""
    record = run.record["features"]
    if not isinstance(held_out, HeldOutImages) or not Path(record["path"]).is_dir():
        return None
    cached = FeatureSet.load(record["path"])
    if cached.fingerprint != record["fingerprint"]:
        return None
    return compare_features(classifier, metadata, held_out, cached)


def _write(
    formats: Sequence[str], classifier: Classifier, metadata: Metadata, folder: Path, name: str, options: dict[str, Any]
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
            "shape": ["batch", *shape],
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

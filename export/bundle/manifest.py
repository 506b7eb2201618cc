"""What a bundle records of itself: ``manifest.json`` and ``parity.json``."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.environment import versions
from ...core.files import sha256_file
from ...models.backbone import Backbone
from ...trainer.run import Run
from ..classifier import Classifier
from ..metadata import Metadata
from ..origin import features_origin, portable
from ..precision.gates import GateReport
from ..proof.held_out import HeldOut
from ..proof.proof import Proof
from ..proof.stated import input_shape
from ..temperature import Calibration
from .bundle import FORMAT, FORMAT_VERSION


def bundle_manifest(
    run: Run,
    metadata: Metadata,
    classifier: Classifier,
    backbone: Backbone | None,
    proofs: Mapping[str, Proof],
    held_out: HeldOut,
    *,
    gate: GateReport | None,
    calibration: Calibration | None,
    half_input: bool,
) -> dict[str, Any]:
    """What ``manifest.json`` holds, less the hashes of the files.

    Args:
        run: What was exported.
        metadata: What the files say of themselves.
        classifier: What was written.
        backbone: ``None`` for a head alone.
        proofs: What was measured, by file.
        held_out: The inputs of the proof.
        gate: What a lower precision costs.
        calibration: The temperature in the weights.
        half_input: Whether a float32 input became a float16 one.
    """
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
            "dtype": "float16" if half_input and kind == "float32" else kind,
            "shape": input_shape(metadata, shape),
            "resize": metadata.resize,
        },
        "outputs": classifier.outputs,
        "k": classifier.k,
        "parameters": sum(parameter.numel() for parameter in classifier.head.parameters())
        + (0 if backbone is None else backbone.parameter_count),
        "backbone": portable(run.record["backbone"]),
        "head": {
            "kind": run.head.kind,
            "options": run.head.options,
            "in_features": run.head.in_features,
            "num_classes": run.head.num_classes,
            "sha256": run.record["head_sha256"],
        },
        "training": portable(asdict(run.config)),
        "results": run.record["results"],
        "features": features_origin(run.record["features"]),
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
        "precision": gate and _placeless(gate.summary()),
        "calibration": calibration and asdict(calibration),
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _placeless(gate: dict[str, Any]) -> dict[str, Any]:
    return gate | {key: portable(gate[key]) for key in ("data",) if key in gate}


def parity_record(
    proofs: Mapping[str, Proof], held_out: HeldOut, cached: float | None, gate: GateReport | None
) -> dict[str, Any]:
    """What ``parity.json`` holds: every comparison, the float32 file's too where a lower precision took its place."""
    return {
        "held_out": {"fingerprint": held_out.fingerprint, "n": len(held_out), "unreadable": held_out.unreadable},
        "cached_features_relative_difference": cached,
        "files": {
            file: proof.parity.to_dict() | {"settings": proof.settings, "top1": asdict(proof.top1)}
            for file, proof in proofs.items()
        },
        "precision": gate and _placeless(gate.to_dict()),
    }


def file_hashes(folder: Path) -> dict[str, dict[str, Any]]:
    """Hash and size of every file in a folder, by its name relative to that."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256_file(path), "bytes": path.stat().st_size}
        for path in files
    }

"""What a bundle records of itself: ``manifest.json`` and ``parity.json``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.environment import versions
from ...core.field_hashes import field_hashes
from ...core.files import sha256_file
from ...core.records import to_json
from ...trainer.run import Run
from ..held_out import HeldOut
from ..origin import features_origin, portable
from ..parity.module import PythonModule
from ..parity.proof import Proof
from ..parity.stated import input_shape
from ..precision.gates import GateReport
from ..temperature import Calibration
from .bundle import FORMAT, FORMAT_VERSION
from .recorded import FIELD, UNHASHED


@dataclass(frozen=True)
class Evidence:
    """What was measured of an export.

    Attributes:
        proofs: By file, those that stay in the bundle.
        replaced: The same of a float32 file whose place a lower precision took.
        held_out: The inputs of the proof.
        cached: The largest difference of the backbone's features from the cached ones, as a share; ``None`` where they
            were not compared.
        gate: What a lower precision costs.
        calibration: The temperature in the weights.
    """

    proofs: Mapping[str, Proof]
    replaced: Mapping[str, Proof]
    held_out: HeldOut
    cached: float | None
    gate: GateReport | None
    calibration: Calibration | None


def bundle_manifest(run: Run, written: PythonModule, evidence: Evidence) -> dict[str, Any]:
    """What ``manifest.json`` holds, less the hashes of the files.

    Args:
        run: What was exported.
        written: What was written, and what the files say of themselves.
        evidence: What was measured.
    """
    classifier, metadata = written
    held_out, gate, calibration = evidence.held_out, evidence.gate, evidence.calibration
    backbone = classifier.backbone
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
            "dtype": str(classifier.example_dtype).removeprefix("torch."),
            "shape": input_shape(metadata, classifier.example_shape),
            "resize": metadata.resize,
        },
        "outputs": classifier.outputs,
        "k": classifier.k,
        "parameters": sum(parameter.numel() for parameter in classifier.head.parameters())
        + (0 if backbone is None else backbone.parameter_count),
        "backbone": portable(run.record.backbone),
        "head": {
            "kind": run.head.kind,
            "options": run.head.options,
            "in_features": run.head.in_features,
            "num_classes": run.head.num_classes,
            "sha256": run.record.head_sha256,
        },
        "training": portable(asdict(run.config)),
        "results": to_json(run.record.results),
        "features": features_origin(to_json(run.record.features)),
        "held_out": {
            "fingerprint": held_out.fingerprint,
            "n": len(held_out) - len(held_out.unreadable),
            "unreadable": to_json(held_out.unreadable),
        },
        "accuracy": {
            file: {"top1": asdict(proof.top1), "top5": asdict(proof.top5) if proof.top5 else None}
            for file, proof in evidence.proofs.items()
        },
        "parity": {file: proof.parity.summary() for file, proof in evidence.proofs.items()},
        "precision": gate and _placeless(gate.summary()),
        "calibration": calibration and asdict(calibration),
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _placeless(gate: dict[str, Any]) -> dict[str, Any]:
    return gate | {key: portable(gate[key]) for key in ("data",) if key in gate}


def parity_record(evidence: Evidence, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What ``parity.json`` holds: every comparison, the float32 file's too where a lower precision took its place.

    And a hash of each field of the manifest, which no other file vouches for.
    """
    held_out, gate = evidence.held_out, evidence.gate
    compared = {**evidence.proofs, **evidence.replaced}
    return {
        "held_out": {
            "fingerprint": held_out.fingerprint,
            "n": len(held_out),
            "unreadable": to_json(held_out.unreadable),
        },
        "cached_features_relative_difference": evidence.cached,
        "files": {
            file: proof.parity.to_dict() | {"settings": to_json(proof.settings), "top1": asdict(proof.top1)}
            for file, proof in compared.items()
        },
        "precision": gate and _placeless(gate.to_dict()),
        FIELD: field_hashes(manifest, without=UNHASHED),
    }


def file_hashes(folder: Path) -> dict[str, dict[str, Any]]:
    """Hash and size of every file in a folder, by its name relative to that."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256_file(path), "bytes": path.stat().st_size}
        for path in files
    }

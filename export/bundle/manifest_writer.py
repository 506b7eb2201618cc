"""What an export writes of itself into a bundle: ``manifest.json`` and ``parity.json``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from ...core.coded_warnings import CodedWarning
from ...core.environment import versions
from ...core.files import sha256_file, write_json
from ...core.json_values import JsonObject
from ...core.records import field_hashes, to_json
from ...trainer.run import Run
from ..held_out import HeldOut
from ..parity.parity_report import ParitySummary
from ..parity.proof_at_export import Proof
from ..parity.python_module import PythonModule
from ..precision.gates import GateReport
from ..provenance import features_origin, portable
from .manifest import (
    FIELD,
    UNHASHED,
    Accuracy,
    Calibration,
    FileRecord,
    HeadRecord,
    InputRecord,
    Manifest,
    PrecisionRecord,
    ProofInputs,
    ResizeParity,
)


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
        resize: How near resize and crop inside the files come to PIL's.
        warnings: What makes the figures doubtful.
    """

    proofs: Mapping[str, Proof]
    replaced: Mapping[str, Proof]
    held_out: HeldOut
    cached: float | None
    gate: GateReport | None
    calibration: Calibration | None
    resize: ResizeParity | None
    warnings: Sequence[CodedWarning] = ()


def bundle_manifest(run: Run, written: PythonModule, evidence: Evidence) -> Manifest:
    """What ``manifest.json`` holds, less the hashes of the files.

    Args:
        run: What was exported.
        written: What was written, and what the files say of themselves.
        evidence: What was measured.
    """
    classifier, metadata = written
    backbone, record = classifier.backbone, run.record
    found = record.backbone
    return Manifest(
        labels=metadata.labels,
        labels_sha256=metadata.labels_sha256,
        preprocessing=metadata.preprocessing,
        preprocessing_sha256=metadata.preprocessing_sha256,
        input=InputRecord(
            metadata.input_name,
            metadata.input_format,
            str(classifier.example_dtype).removeprefix("torch."),
            metadata.input_shape(classifier.example_shape),
            metadata.resize,
        ),
        outputs=tuple(classifier.outputs),
        k=classifier.k,
        parameters=sum(parameter.numel() for parameter in classifier.head.parameters())
        + (0 if backbone is None else backbone.parameter_count),
        backbone=found and replace(found, checkpoint=portable(found.checkpoint), file=portable(found.file)),
        head=HeadRecord(
            run.head.kind, run.head.options, run.head.in_features, run.head.num_classes, record.head_sha256
        ),
        training=portable(to_json(run.config)),
        results=record.results,
        features=features_origin(record.features),
        held_out=_inputs(evidence.held_out, unreadable=False),
        accuracy={file: Accuracy(proof.top1, proof.top5) for file, proof in evidence.proofs.items()},
        parity={file: ParitySummary.of(proof.parity) for file, proof in evidence.proofs.items()},
        precision=None if evidence.gate is None else _precision(evidence.gate),
        calibration=evidence.calibration,
        resize=evidence.resize,
        warnings=tuple(evidence.warnings),
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files={},
    )


def _inputs(held_out: HeldOut, *, unreadable: bool) -> ProofInputs:
    """The inputs of a proof, counted with those that were left out or without."""
    left_out = tuple(held_out.unreadable)
    return ProofInputs(held_out.fingerprint, len(held_out) - (0 if unreadable else len(left_out)), left_out)


def _precision(gate: GateReport) -> PrecisionRecord:
    found = {one.name: getattr(gate, one.name) for one in fields(PrecisionRecord)}
    return PrecisionRecord(**found | {"data": portable(gate.data), "agreement": ParitySummary.of(gate.agreement)})


def write_parity(path: Path, evidence: Evidence, manifest: Manifest) -> None:
    """Write ``parity.json``: every comparison, the float32 file's too where a lower precision took its place.

    And a hash of each field of the manifest, which no other file vouches for.
    """
    gate, compared = evidence.gate, {**evidence.proofs, **evidence.replaced}
    found: JsonObject = {
        "held_out": _inputs(evidence.held_out, unreadable=True),
        "cached_features_relative_difference": evidence.cached,
        "files": {
            file: to_json(proof.parity) | {"settings": to_json(proof.settings), "top1": to_json(proof.top1)}
            for file, proof in compared.items()
        },
        "precision": gate and replace(gate, data=portable(gate.data)),
        FIELD: field_hashes(to_json(manifest), without=UNHASHED),
    }
    write_json(path, to_json(found))


def file_records(folder: Path) -> dict[str, FileRecord]:
    """Hash and size of every file in a folder, by its name relative to that."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_record(path) for path in files}


def file_record(path: Path) -> FileRecord:
    """Hash and size of a file."""
    return FileRecord(sha256_file(path), path.stat().st_size)

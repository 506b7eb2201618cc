"""Bring a bundle's ONNX file to a lower precision, and let it pass or fail on validation inputs."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ..errors import GateError
from ..formats.formats import FORMATS, open_model
from ..proof.held_out import HeldOut
from ..runtime import Array
from .gates import GateReport, Limits, measure_gate
from .precision import Precision

ONNX = FORMATS["onnx"].file
FULL = "fp32"
FULL_FILE = f"{FULL}/{ONNX}"


def lower_file(
    path: Path, precision: Precision, limits: Limits, training: HeldOut, validation: HeldOut, batch_size: int
) -> GateReport:
    """Replace a float32 ONNX file by one in lower precision; the former is kept in a folder ``fp32`` beside it.

    Args:
        path: The file.
        precision: The new precision.
        limits: What may be lost.
        training: Inputs to take ranges of activations from.
        validation: Inputs to measure on.
        batch_size: Inputs a run.

    Returns:
        What was measured.

    Raises:
        InputError: Not one input could be read.
        ExportError: The file cannot be brought to that precision.
        GateError: More is lost than may be.
    """
    kept = path.parent / FULL
    kept.mkdir()
    for file in list(path.parent.glob(f"{path.name}*")):  # external data, where there are any
        shutil.move(file, kept)
    full = open_model(kept / path.name)
    batch_size = full.metadata.batch_size(batch_size)

    def calibration() -> Iterable[Array]:
        for batch in training.sample(precision.calibration_images).batches(batch_size):
            yield full.feed(batch.inputs)

    precision.apply(kept / path.name, path, full.metadata, calibration())
    report = measure_gate(full, open_model(path), validation, batch_size, limits)
    if not report.passed:
        raise GateError(report.failure(), report)
    return report

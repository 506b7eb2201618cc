"""Bring a bundle's ONNX file to a lower precision, and let it pass or fail on validation inputs."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ..errors import GateError
from ..formats.registry import FORMATS
from ..held_out import HeldOut
from ..options import ExportOptions
from ..runtime import Array, open_model
from .gates import GateReport, measure_gate
from .lower_writer import write_lower

ONNX = FORMATS["onnx"].file
FULL = "fp32"
FULL_FILE = f"{FULL}/{ONNX}"
# Training inputs, drawn at random, that ranges of activations are taken from. Ranges are smallest and largest values.
CALIBRATION = 512


def lower_file(path: Path, training: HeldOut, validation: HeldOut, options: ExportOptions) -> GateReport:
    """Replace a float32 ONNX file by one in lower precision; the former is kept in a folder ``fp32`` beside it.

    Args:
        path: The file.
        training: Inputs to take ranges of activations from.
        validation: Inputs to measure on.
        options: The new precision, and what it may lose.

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

    def calibration() -> Iterable[Array]:
        for batch in training.sample(CALIBRATION).batches(full.metadata.batch_size(options.batch_size)):
            yield full.feed(batch.inputs)

    write_lower(full, path, calibration(), options)
    report = measure_gate(full, open_model(path), validation, options)
    if not report.passed:
        raise GateError(report.failure(), report)
    return report

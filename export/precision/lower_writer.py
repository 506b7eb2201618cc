"""Bring an exported ONNX file to a lower precision."""

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import onnx

from ..errors import GateError
from ..formats.onnx_format import save_onnx
from ..options import FP16, INT8, ExportOptions
from ..runtime import Array, Model
from .half import LARGEST_HALF, beyond_half, half_names, to_half
from .quantization import quantize_dynamically, quantize_with_ranges


def write_lower(full: Model, path: Path, calibration: Iterable[Array], options: ExportOptions) -> None:
    """Write a float32 ONNX file in a lower precision.

    Args:
        full: The file.
        path: The new file.
        calibration: Batches of training inputs, in the layout and dtype that the file takes.
        options: ``precision``, and ``fp32_head``.

    Raises:
        GateError: Activations that float16 has no numbers for.
        ExportError: The graph has nothing to bring to this precision, or the result is not valid.
    """
    model = onnx.load(full.path)
    opset = next(entry.version for entry in model.opset_import if not entry.domain)
    if options.precision == FP16:
        _check_range(full.path, calibration, options)
        converted = to_half(model, keep_head=options.fp32_head)
    else:
        converted = _quantized(model, calibration, options)
    save_onnx(converted, replace(full.metadata, precision=options.precision), path, opset=opset)


def _check_range(source: Path, calibration: Iterable[Array], options: ExportOptions) -> None:
    beyond = beyond_half(source, calibration, keep_head=options.fp32_head)
    if beyond:
        name, value = max(beyond.items(), key=lambda item: item[1])
        head_alone = not beyond.keys() & half_names(onnx.load(source), keep_head=True)
        raise GateError(
            f"{FP16}: {len(beyond)} tensors would not be finite on training inputs, the largest {name} with "
            f"{value:g} (float16 ends at {LARGEST_HALF:g})",
            advice="keep the head in float32 with --fp32-head" if head_alone else f"leave --precision {FP16} out",
            head_alone=head_alone,
        )


def _quantized(model: onnx.ModelProto, calibration: Iterable[Array], options: ExportOptions) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "quantized.onnx")
        if options.precision == INT8:
            quantize_with_ranges(model, path, calibration)
        else:
            quantize_dynamically(model, path)
        return onnx.load(path)

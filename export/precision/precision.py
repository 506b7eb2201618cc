"""What the ONNX files of a bundle compute in, and how they are brought to it."""

import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import onnx

from ...core.errors import InputError
from ..errors import GateError
from ..formats.onnx_format import save_onnx
from ..metadata import FEATURES, FLOAT32, FLOAT_NCHW, Metadata
from ..runtime import Array
from .half import LARGEST_HALF, beyond_half, to_half
from .quantization import quantize_dynamically, quantize_with_ranges


@dataclass(frozen=True)
class Precision:
    """What the files compute in, and how that is done.

    Attributes:
        kind: ``fp32``, ``fp16``, ``int8`` or ``int8-dynamic``.
        fp32_head: With ``fp16``: the head stays float32.
        fp16_input: With ``fp16``: a float32 input becomes a float16 one.
        calibration_images: How many training inputs the ranges of activations are taken from: the scales of ``int8``,
            and whether ``fp16`` overflows.
    """

    kind: str
    fp32_head: bool
    fp16_input: bool
    calibration_images: int

    def check(self, formats: Collection[str], metadata: Metadata) -> None:
        """Raise an `InputError` unless files of these formats, with such inputs, can have this precision."""
        if self.lower and "onnx" not in formats:
            raise InputError(f"--{self.kind}: is for model.onnx; add --format onnx")
        if self.lower and metadata.encoded:
            raise InputError(f"--{self.kind}: found with --input encoded, expected --input uint8-nhwc --resize")
        if self.fp16_input and metadata.input_format not in (FLOAT_NCHW, FEATURES):
            raise InputError(f"--fp16-input: found with --input {metadata.input_format}, which stays; leave it out")

    @classmethod
    def chosen(
        cls, *, fp16: bool, fp32_head: bool, fp16_input: bool, int8: bool, int8_dynamic: bool, calibration_images: int
    ) -> Self:
        """The precision that the keywords of `export_classifier` of the same names ask for.

        Raises:
            InputError: Keywords that exclude each other, or no calibration images.
        """
        kinds = [kind for kind, asked in (("fp16", fp16), ("int8", int8), ("int8-dynamic", int8_dynamic)) if asked]
        if len(kinds) > 1:
            raise InputError(f"--{' --'.join(kinds)}: a bundle has one precision; choose one of them")
        if (fp32_head or fp16_input) and not fp16:
            raise InputError(f"--{'fp32-head' if fp32_head else 'fp16-input'}: says how to convert; add --fp16")
        if calibration_images < 1:
            raise InputError(f"--calibration-images: {calibration_images} found, expected 1 or more")
        return cls(kinds[0] if kinds else FLOAT32, fp32_head, fp16_input, calibration_images)

    @property
    def lower(self) -> bool:
        """Whether it is less than float32."""
        return self.kind != FLOAT32

    def apply(self, source: Path, path: Path, metadata: Metadata, calibration: Iterable[Array]) -> None:
        """Write a float32 ONNX file in this precision.

        Args:
            source: The file.
            path: The new file.
            metadata: What the file says of itself; the new one says its precision too.
            calibration: Batches of training inputs, in the layout and dtype that the file takes.

        Raises:
            GateError: Activations that float16 has no numbers for.
            ExportError: The graph has nothing to bring to this precision, or the result is not valid.
        """
        model = onnx.load(source)
        opset = next(entry.version for entry in model.opset_import if not entry.domain)
        if self.kind == "fp16":
            self._check_range(source, calibration)
            converted = to_half(model, keep_head=self.fp32_head, half_input=self.fp16_input)
        else:
            converted = self._quantized(model, calibration)
        save_onnx(converted, replace(metadata, precision=self.kind), path, opset=opset)

    def _check_range(self, source: Path, calibration: Iterable[Array]) -> None:
        beyond = beyond_half(source, calibration, keep_head=self.fp32_head)
        if beyond:
            name, value = max(beyond.items(), key=lambda item: item[1])
            advice = "leave --fp16 out" if self.fp32_head else "keep the head in float32 with --fp32-head"
            raise GateError(
                f"fp16: {len(beyond)} tensors would not be finite on training inputs, the largest {name} with "
                f"{value:g} (float16 ends at {LARGEST_HALF:g}); {advice}"
            )

    def _quantized(self, model: onnx.ModelProto, calibration: Iterable[Array]) -> onnx.ModelProto:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "quantized.onnx")
            if self.kind == "int8":
                quantize_with_ranges(model, path, calibration)
            else:
                quantize_dynamically(model, path)
            return onnx.load(path)

"""What an export is asked for: every option with its default, its help and its choices."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.count_limits import check_at_once
from ..core.errors import InputError
from ..core.settings import check_choices, setting
from .formats.registry import FORMATS

if TYPE_CHECKING:
    from ..trainer.features.feature_set import FeatureSet

FEATURES = "features"
FLOAT_NCHW, UINT8_NHWC, ENCODED = "float-nchw", "uint8-nhwc", "encoded"
PIXEL_FORMATS = (FLOAT_NCHW, UINT8_NHWC, ENCODED)
FP32, FP16, INT8, INT8_DYNAMIC = PRECISIONS = ("fp32", "fp16", "int8", "int8-dynamic")
OPSET = 18
TOP_K = 5  # the most classes that a file names by itself


@dataclass(frozen=True)
class ExportOptions:
    """The options of one export; see `export_classifier`, whose keywords they are.

    Raises:
        InputError: A value that means nothing, or two that do not go together.
    """

    formats: tuple[str, ...] = setting(
        ("onnx",), "May be given more than once.", values=tuple(FORMATS), flag="--format"
    )
    head_only: bool = setting(False, "Features to logits, without the backbone.")
    input_format: str = setting(
        FLOAT_NCHW,
        "RGB in 0..255, resized and cropped; or the bytes of an image file.",
        values=PIXEL_FORMATS,
        flag="--input",
    )
    resize: bool = setting(False, "With uint8-nhwc: images of any size, resized and cropped inside the file.")
    probabilities: bool = setting(False, "A further output: the softmax of the logits.")
    precision: str = setting(
        FP32,
        "What model.onnx computes in. int8 takes ranges of activations from training images, int8-dynamic from every "
        "batch.",
        values=PRECISIONS,
    )
    fp32_head: bool = setting(False, "With --precision fp16: the head stays float32.")
    max_drop: float = setting(
        1.0, "Points of top-1 and of top-5 that a lower precision may lose on validation images, against float32."
    )
    calibrate: bool = setting(False, "Fit a temperature on validation, inside the weights.")
    opset: int = setting(OPSET, "ONNX operator set.")
    data: "str | Path | FeatureSet | None" = setting(
        None, "Held-out images, for a head alone a feature set.", left_out="the run's test split"
    )
    batch_size: int = setting(64, "Images a batch of the parity check.")
    tolerance: float | None = setting(
        None,
        "In logits: no logit may differ by more (times the largest), flips on smaller margins are excused.",
        left_out="30 times the rounding that float64 shows",
    )
    overwrite: bool = setting(False, "Replace a folder that exists.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "formats", tuple(self.formats))
        check_choices(self)
        if not self.formats or len(set(self.formats)) < len(self.formats):
            raise InputError(f"--format: {', '.join(self.formats) or 'none'} found, expected some formats, each once")
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise InputError(f"--tolerance: {self.tolerance} found, expected a number of logits, 0 or more")
        check_at_once("--batch-size", self.batch_size)
        if not 0 <= self.max_drop <= 100:
            raise InputError(f"--max-drop: {self.max_drop} found, expected 0 to 100 points")
        self._check_input()
        self._check_precision()

    def _check_input(self) -> None:
        if self.head_only and self.input_format != FLOAT_NCHW:
            raise InputError(
                f"--input {self.input_format}: found with --head-only, whose input is features; leave it out"
            )
        if self.resize and (self.head_only or self.input_format == FLOAT_NCHW):
            found = FEATURES if self.head_only else self.input_format
            raise InputError(f"--resize: found with --input {found}, expected --input {UINT8_NHWC}")
        if self.input_format == ENCODED and self.formats != ("onnx",):
            raise InputError(f"--format {', '.join(self.formats)}: --input encoded is for onnx alone; export twice")
        if self.resize and "timm" in self.formats:
            raise InputError("--format timm: timm resizes before its networks, not inside; export it without --resize")
        if self.input_format != FLOAT_NCHW and "timm" in self.formats:
            raise InputError(
                f"--format timm: timm's networks take float images, found --input {self.input_format}; export it alone"
            )

    def _check_precision(self) -> None:
        if self.fp32_head and self.precision != FP16:
            raise InputError(f"--fp32-head: says how to convert; add --precision {FP16}")
        if self.lower and "onnx" not in self.formats:
            raise InputError(f"--precision {self.precision}: is for model.onnx; add --format onnx")
        if self.lower and self.input_format == ENCODED:
            raise InputError(
                f"--precision {self.precision}: found with --input encoded, expected --input {UINT8_NHWC} --resize"
            )

    @property
    def lower(self) -> bool:
        """Whether `precision` is less than float32."""
        return self.precision != FP32

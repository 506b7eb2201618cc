"""Deploy a trained head: the classifier as one file, its bundle, its runtime, and the proof that both agree."""

from .bundle import Bundle
from .classifier import Classifier
from .exporting import export_classifier
from .formats import open_model
from .onnx_format import ExportError
from .parity import Flip, ParityError, ParityReport
from .runtime import Model, Outputs

__all__ = [
    "Bundle",
    "Classifier",
    "ExportError",
    "Flip",
    "Model",
    "Outputs",
    "ParityError",
    "ParityReport",
    "export_classifier",
    "open_model",
]

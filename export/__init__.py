"""Deploy a trained head: the classifier as one file, its bundle, its runtime, and the proof that both agree."""

from .bundle import Bundle
from .classifier import Classifier
from .errors import ExportError, FixedBatchError, GateError, ParityError, UnsupportedOperatorError
from .exporting import export_classifier
from .file_info import FileInfo, file_info
from .formats import open_model
from .grafting import graft
from .parity import Flip, ParityReport
from .pushing import push
from .runtime import Model, Outputs
from .verifying import Verification, verify

__all__ = [
    "Bundle",
    "Classifier",
    "ExportError",
    "FileInfo",
    "FixedBatchError",
    "Flip",
    "GateError",
    "Model",
    "Outputs",
    "ParityError",
    "ParityReport",
    "UnsupportedOperatorError",
    "Verification",
    "export_classifier",
    "file_info",
    "graft",
    "open_model",
    "push",
    "verify",
]

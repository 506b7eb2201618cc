from .bundle.bundle import Bundle
from .bundle.file_info import FileInfo, file_info
from .bundle.pushing import push
from .classifier import Classifier
from .errors import ExportError, FixedBatchError, GateError, ParityError, UnsupportedOperatorError
from .exporting import export_classifier
from .head_replacement import graft
from .parity.bundle_verification import Verification, verify
from .parity.parity_report import Flip, ParityReport
from .runtime import Model, Outputs, open_model

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

"""The command line. Each command is one function of the Python API with the same keywords and defaults.

What is heavy (torch, timm, onnxruntime) is imported inside the commands, so that ``headsmith --help`` is quick.
"""

from . import environment, features, training, export, evaluation, benchmark, report, onnx_files, hub  # isort: skip  # the order of the help
from .app import app

__all__ = [
    "app",
    "benchmark",
    "environment",
    "evaluation",
    "export",
    "features",
    "hub",
    "onnx_files",
    "report",
    "training",
]

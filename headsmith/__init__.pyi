from .core.errors import DamagedFileError, HeadsmithError, InputError, ProviderError
from .core.version import __version__
from .evaluate import Comparison, EvalResult, Prediction, compare, evaluate_classifiers, predict, write_report
from .evaluate.benchmark import Benchmark, BenchmarkRow, benchmark
from .export import (
    Bundle,
    ExportError,
    FileInfo,
    GateError,
    ParityError,
    export_classifier,
    file_info,
    graft,
    open_model,
    push,
    verify,
)
from .models import Backbone, BackboneInfo, Preprocessing, list_backbones, load_backbone
from .trainer import FeatureSet, Inspection, Run, TrainConfig, extract, import_features, inspect_features, train
from .trainer.estimator import HeadClassifier
from .trainer.losses import TopKCrossEntropy, topk_cross_entropy
from .trainer.sweep import Sweep, sweep

__all__ = [
    "Backbone",
    "BackboneInfo",
    "Benchmark",
    "BenchmarkRow",
    "Bundle",
    "Comparison",
    "DamagedFileError",
    "EvalResult",
    "ExportError",
    "FeatureSet",
    "FileInfo",
    "GateError",
    "HeadClassifier",
    "HeadsmithError",
    "InputError",
    "Inspection",
    "ParityError",
    "Prediction",
    "Preprocessing",
    "ProviderError",
    "Run",
    "Sweep",
    "TopKCrossEntropy",
    "TrainConfig",
    "__version__",
    "benchmark",
    "compare",
    "evaluate_classifiers",
    "export_classifier",
    "extract",
    "file_info",
    "graft",
    "import_features",
    "inspect_features",
    "list_backbones",
    "load_backbone",
    "open_model",
    "predict",
    "push",
    "sweep",
    "topk_cross_entropy",
    "train",
    "verify",
    "write_report",
]

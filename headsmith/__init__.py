"""Train classification heads on frozen backbones, export them, and measure the exported file.

The names below load what they need on first use, so that importing headsmith costs nothing. `headsmith.export` and
`headsmith.evaluate` are the sub-packages; the functions in them are called `export_classifier` and
`evaluate_classifier`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .evaluate import EvalResult, Prediction, evaluate_classifier, predict
    from .export import Bundle, ParityError, export_classifier, open_model
    from .models import Backbone, InputError, Preprocessing, load_backbone
    from .trainer import FeatureSet, Inspection, Run, TrainConfig, extract, import_features, inspect_features, train
    from .trainer.estimator import HeadClassifier
    from .trainer.losses import TopKCrossEntropy, topk_cross_entropy
    from .trainer.sweep import Sweep, sweep

_HOMES = {
    "Backbone": "models",
    "Bundle": "export",
    "EvalResult": "evaluate",
    "FeatureSet": "trainer",
    "HeadClassifier": "trainer.estimator",
    "InputError": "models",
    "Inspection": "trainer",
    "ParityError": "export",
    "Prediction": "evaluate",
    "Preprocessing": "models",
    "Run": "trainer",
    "Sweep": "trainer.sweep",
    "TopKCrossEntropy": "trainer.losses",
    "TrainConfig": "trainer",
    "evaluate_classifier": "evaluate",
    "export_classifier": "export",
    "extract": "trainer",
    "import_features": "trainer",
    "inspect_features": "trainer",
    "load_backbone": "models",
    "open_model": "export",
    "predict": "evaluate",
    "sweep": "trainer.sweep",
    "topk_cross_entropy": "trainer.losses",
    "train": "trainer",
}

__all__ = [
    "Backbone",
    "Bundle",
    "EvalResult",
    "FeatureSet",
    "HeadClassifier",
    "InputError",
    "Inspection",
    "ParityError",
    "Prediction",
    "Preprocessing",
    "Run",
    "Sweep",
    "TopKCrossEntropy",
    "TrainConfig",
    "__version__",
    "evaluate_classifier",
    "export_classifier",
    "extract",
    "import_features",
    "inspect_features",
    "load_backbone",
    "open_model",
    "predict",
    "sweep",
    "topk_cross_entropy",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__

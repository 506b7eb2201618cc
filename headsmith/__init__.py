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
    from .trainer import FeatureSet, Run, TrainConfig, extract, train
    from .trainer.losses import TopKCrossEntropy, topk_cross_entropy

_HOMES = {
    "Backbone": "models",
    "Bundle": "export",
    "EvalResult": "evaluate",
    "FeatureSet": "trainer",
    "InputError": "models",
    "ParityError": "export",
    "Prediction": "evaluate",
    "Preprocessing": "models",
    "Run": "trainer",
    "TopKCrossEntropy": "trainer.losses",
    "TrainConfig": "trainer",
    "evaluate_classifier": "evaluate",
    "export_classifier": "export",
    "extract": "trainer",
    "load_backbone": "models",
    "open_model": "export",
    "predict": "evaluate",
    "topk_cross_entropy": "trainer.losses",
    "train": "trainer",
}

__all__ = [
    "Backbone",
    "Bundle",
    "EvalResult",
    "FeatureSet",
    "InputError",
    "ParityError",
    "Prediction",
    "Preprocessing",
    "Run",
    "TopKCrossEntropy",
    "TrainConfig",
    "__version__",
    "evaluate_classifier",
    "export_classifier",
    "extract",
    "load_backbone",
    "open_model",
    "predict",
    "topk_cross_entropy",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__

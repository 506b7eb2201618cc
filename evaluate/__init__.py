"""Measure exported files on held-out data, and ask them for labels."""

from .evaluation import evaluate_classifier
from .prediction import Prediction, predict
from .result import EvalResult

__all__ = ["EvalResult", "Prediction", "evaluate_classifier", "predict"]

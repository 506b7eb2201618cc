"""Measure exported files on held-out data, and ask them for labels."""

from .evaluation import evaluate_classifier
from .old_result import EvalResult
from .prediction import Prediction, predict
from .results import Results, load_results

__all__ = ["EvalResult", "Prediction", "Results", "evaluate_classifier", "load_results", "predict"]

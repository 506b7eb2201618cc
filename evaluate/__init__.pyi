from .comparison import Comparison, compare
from .evaluation import evaluate_classifiers
from .prediction import Prediction, predict
from .report import write_report
from .result import EvalResult
from .results import Results, load_results

__all__ = [
    "Comparison",
    "EvalResult",
    "Prediction",
    "Results",
    "compare",
    "evaluate_classifiers",
    "load_results",
    "predict",
    "write_report",
]

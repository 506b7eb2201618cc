"""The folder with the results of an evaluation: what is in it, how it grows, how it is read."""

from .predictions import Predictions
from .reading import Results, load_results
from .store import ResultsFolder

__all__ = ["Predictions", "Results", "ResultsFolder", "load_results"]

"""How a bank of heads is fitted to features: rows, steps, scores, checkpoints."""

from .fit import METRICS, Fitted, fit_heads
from .processes import Processes, join

__all__ = ["METRICS", "Fitted", "Processes", "fit_heads", "join"]

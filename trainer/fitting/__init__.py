"""How a bank of heads is fitted to features: rows, steps, scores, checkpoints."""

from .fit import METRICS, Fitted, fit_heads

__all__ = ["METRICS", "Fitted", "fit_heads"]

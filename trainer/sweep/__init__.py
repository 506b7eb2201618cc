"""Sweeps: a grid of settings, trained in banks, one pass over the data a bank."""

from .result import Sweep
from .sweeping import sweep

__all__ = ["Sweep", "sweep"]

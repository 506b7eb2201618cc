"""Inputs and logits that nobody took a picture of: they reach what held-out inputs leave untouched."""

import numpy as np

from ..runtime import Array

ROWS = 8


def made_up_inputs(inputs: Array) -> Array:
    """Inputs like some real ones ``(N, ...)``, of other contents: noise, the real ones' opposites, and extremes.

    Of features each column varies, one that is constant in all real inputs too, so that each weight of a head counts.
    """
    random = np.random.default_rng(0)
    if inputs.dtype == np.uint8:
        noise = random.integers(0, 256, (2, *inputs.shape[1:]), dtype=np.uint8)
        return np.concatenate([noise, ~inputs[:1], np.zeros_like(inputs[:1]), np.full_like(inputs[:1], 255)])
    values = inputs.astype(np.float32)
    spread = values.std(axis=0)
    spread = np.maximum(spread, spread.mean() or 1.0)
    drawn = values.mean(axis=0) + spread * random.normal(size=(ROWS, *inputs.shape[1:]))
    made: Array = np.concatenate([drawn.astype(inputs.dtype), -inputs[:1], np.zeros_like(inputs[:1])])
    return made


def made_up_logits(classes: int) -> Array:
    """Logits ``(N, C)`` float32 with every kind of tie: all equal, pairs, small whole numbers; and of every size."""
    random = np.random.default_rng(0)
    ties = random.integers(-2, 3, (ROWS, classes))
    sizes = random.normal(size=(4, classes)) * np.array([[1e-3], [1.0], [30.0], [1000.0]])
    return np.concatenate([np.zeros((1, classes)), ties, ties[:1] + 100, sizes]).astype(np.float32)

"""Rows of logits that tools trip over: ties, NaN, infinities, few classes."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

few = st.sampled_from([-2.0, 0.0, 0.5, 3.0])  # ties are the rule
broken = few | st.sampled_from([float("nan"), float("inf"), float("-inf")])
ordinary = st.floats(-30, 30, width=32)


@st.composite
def rows(draw, elements=few | ordinary, min_classes=1, max_rows=12):
    """Logits ``(N, C)`` float32 and labels ``(N,)``."""
    count, classes = draw(st.integers(1, max_rows)), draw(st.integers(min_classes, 8))
    logits = draw(arrays(np.float32, (count, classes), elements=elements))
    return logits, draw(arrays(np.int64, count, elements=st.integers(0, classes - 1)))


def many(rows=2000, classes=20, seed=0):
    """Logits whose label is often the best class, and the labels."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(rows, classes)).astype(np.float32)
    labels = random.integers(0, classes, rows)
    logits[np.arange(rows), labels] += random.exponential(2, rows).astype(np.float32)
    return logits, labels

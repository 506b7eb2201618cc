"""From where on a value is no feature any more, but a sign of damage."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TIMES, SAMPLE = 1e6, 1000


def limits(features: Array) -> Array:
    """`TIMES` the usual magnitude in each column: its median, or where that is less the median of all that is not 0.

    Medians, so that damaged values do not move them; by column, so that columns of different units pass.

    Args:
        features: ``(N, D)``, of which a sample of rows is read.

    Returns:
        ``(D,)`` float64, infinite where there is nothing to compare with.
    """
    sample = np.abs(features[:: max(1, len(features) // SAMPLE)].astype(np.float64))
    sample[~np.isfinite(sample)] = 0
    some = sample[sample > 0]
    if not some.size:
        return np.full(features.shape[1], np.inf)
    limit: Array = TIMES * np.maximum(np.median(sample, axis=0), np.median(some))
    return limit

"""How large features are, and what that asks of a linear head and of Adam.

Adam moves every weight by about its rate, whatever the features. A rate that suits features of one size is slow for
smaller ones (embeddings of length 1) and rough for larger ones (pixels in 0..255), and so are the first weights.
"""

import math

from torch import Tensor

# Between these sizes nothing is adapted: there the default rates were found, and there are most networks' features.
SMALL, LARGE = 0.28, 2.0
# A bias has no features: its steps must not become absurd.
_MOST = 200.0
# Smaller features than this ask for larger rates than that.
TINY = SMALL / _MOST
_SAMPLE = 1000
# Settings of a user's own that make a preset's rates stand as they are.
OWN_RATES = {"learning_rate", "weight_decay", "head", "optimizer"}


def column_size(features: Tensor) -> float:
    """The median root mean square of the columns ``(N, D)`` that are not 0, by at most 2,000 rows; 1 if all are 0."""
    some = features[:: max(1, len(features) // _SAMPLE)].double()
    sizes = some.square().mean(0).sqrt()
    median = float(sizes[sizes > 0].median())
    return median if 0 < median < math.inf else 1.0  # the median of nothing is NaN


def rate_factor(size: float) -> float:
    """What Adam's default rates are multiplied by, for a linear head on features of a `column_size`."""
    return min(max(SMALL / size, 1.0), _MOST) * first_weights(size)


def for_size(size: float, learning_rate: float, weight_decay: float) -> tuple[float, float]:
    """The rate and the decoupled decay that do with features of a `column_size` what these do where it is 1.

    A linear head on features x / size is one with the weights w / size on x: Adam then moves w by the rate over the
    size, and decay takes the rate times the decay of them.
    """
    return float(f"{learning_rate / size:.3g}"), float(f"{weight_decay * size:.3g}")


def first_weights(size: float) -> float:
    """What the small random weights of a linear head are multiplied by, for scores of the usual size."""
    return min(LARGE / size, 1.0)

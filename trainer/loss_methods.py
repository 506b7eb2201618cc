"""The methods, one line each: where its formula and kernel stand, its learning rate, and its inverse temperature.

A relaxation is added by `losses/relaxations/NAME.py`, which holds its mathematics, `losses/kernels/NAME.py`, which
holds its kernel, and a line in `METHOD_DEFAULTS` here, which the command line reads too: no import of torch.
"""

from collections.abc import Callable
from typing import NamedTuple

# Logistic: the settings with which Petersen et al. (2022) trained heads on ImageNet. Cauchy: their package's example.
# Reciprocal and optimal have Cauchy's tails and take its value; Gaussian has light tails like logistic.
_OF_DISTRIBUTION = {
    "logistic": 0.5,
    "logistic_phi": 1.0,
    "cauchy": 2.0,
    "gaussian": 0.5,
    "reciprocal": 2.0,
    "optimal": 2.0,
}
DISTRIBUTIONS = tuple(_OF_DISTRIBUTION)
TOP1_MODES, SOFTMAX_OVER = ("sort", "sm", "smce"), ("candidates", "classes")


def _of_distribution(distribution: str, m: int) -> float:
    return _OF_DISTRIBUTION[distribution]


def _ten_a_rank(distribution: str, m: int) -> float:
    """SinkhornSort's cost between neighbouring ranks shrinks as 1 / (m - 1), so that its inverse temperature grows.

    Ten for each step between two targets keeps the blur at about one rank, whatever m is.
    """
    return 10.0 * max(m - 1, 1)


class Method(NamedTuple):
    """A method of top-k cross-entropy.

    Attributes:
        module: the name of its modules in `relaxations/` and `kernels/`; `softmax` has a kernel alone.
        learning_rate: Adam's, found on the glyph set (1,000 classes, 16 epochs, batch 512, validation accuracy) among
            1e-3 ... 3e-2.
        inverse_temperature: the default, or a function that gives it for a distribution and m; NeuralSort's and
            SoftSort's are those of Petersen et al. (2022).
    """

    module: str
    learning_rate: float
    inverse_temperature: float | Callable[[str, int], float]


METHOD_DEFAULTS = {
    "softmax": Method("softmax", 3e-3, 1.0),
    "neuralsort": Method("neuralsort", 1e-2, 0.5),
    "softsort": Method("softsort", 1e-2, 0.5),
    "sinkhorn": Method("sinkhorn", 1e-2, _ten_a_rank),
    "odd_even": Method("sorting_network", 3e-3, _of_distribution),
    "bitonic": Method("sorting_network", 1e-2, _of_distribution),
    "splitter_selection": Method("sorting_network", 3e-3, _of_distribution),
}
METHODS = tuple(METHOD_DEFAULTS)
NETWORKS = tuple(name for name, method in METHOD_DEFAULTS.items() if method.module == "sorting_network")


def default_inverse_temperature(method: str, distribution: str, m: int) -> float:
    """The inverse temperature that a method takes when none is given."""
    default = METHOD_DEFAULTS[method].inverse_temperature
    return default(distribution, m) if callable(default) else default

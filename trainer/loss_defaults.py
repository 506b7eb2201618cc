"""The methods, one line each: where its formula and kernel stand, its learning rate, and what it reads.

A method is added by its mathematics in `losses/relaxations/NAME.py`, `losses/memberships/NAME.py` or
`losses/objectives/NAME.py`, by `losses/kernels/NAME.py` where it has a kernel, and by a line in `METHOD_DEFAULTS` here,
which the command line reads too: no import of torch.
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
CROSS_ENTROPY, RELAXATION, MEMBERSHIP, OBJECTIVE = "cross-entropy", "relaxation", "membership", "objective"


def _of_distribution(distribution: str, m: int) -> float:
    return _OF_DISTRIBUTION[distribution]


# Between neighbouring ranks. More makes the gradient at equal scores, a head of zeros, outweigh all other rows.
SINKHORN_STEEPNESS = 3.0


def _by_ranks(distribution: str, m: int) -> float:
    """SinkhornSort's cost between neighbouring ranks shrinks as 1 / (m - 1), so that its inverse temperature grows."""
    return SINKHORN_STEEPNESS * max(m - 1, 1)


class Method(NamedTuple):
    """A method of top-k cross-entropy.

    Attributes:
        kind: `relaxation` (it gives the label's probability at each rank), `membership` (the label's probability to be
            among the k best), `objective` (a loss for each k), or plain `cross-entropy`.
        module: the name of its module in `relaxations/`, `memberships/` or `objectives/`, and in `kernels/`.
        learning_rate: Adam's, found on the glyph set (1,000 classes, 16 epochs, batch 512, validation accuracy) among
            1e-3 ... 3e-2.
        inverse_temperature: the default, or a function that gives it for a distribution and m; NeuralSort's and
            SoftSort's are those of Petersen et al. (2022). None: it has no temperature.
        reads: its own options, beside those that all methods of its kind read; and `class_counts`, a tensor.
        fused: whether `kernels/` holds it; the others run in plain torch.
    """

    kind: str
    module: str
    learning_rate: float
    inverse_temperature: float | Callable[[str, int], float] | None
    reads: tuple[str, ...] = ()
    fused: bool = True


_NOISED = ("inverse_temperature", "samples", "noise_seed")
_NETWORK = ("distribution", "art_lambda")
METHOD_DEFAULTS = {
    "softmax": Method(CROSS_ENTROPY, "softmax", 3e-3, None),
    "neuralsort": Method(RELAXATION, "neuralsort", 1e-2, 0.5),
    "softsort": Method(RELAXATION, "softsort", 1e-2, 0.5, ("softsort_power",)),
    "sinkhorn": Method(RELAXATION, "sinkhorn", 1e-2, _by_ranks, ("sinkhorn_iterations", "sinkhorn_tolerance")),
    "odd_even": Method(RELAXATION, "sorting_network", 3e-3, _of_distribution, _NETWORK),
    "bitonic": Method(RELAXATION, "sorting_network", 1e-2, _of_distribution, _NETWORK),
    "splitter_selection": Method(RELAXATION, "sorting_network", 3e-3, _of_distribution, _NETWORK),
    "lapsum": Method(MEMBERSHIP, "lapsum", 1e-2, 0.25),
    "dftopk": Method(MEMBERSHIP, "dftopk", 1e-2, 1 / 3),
    "optimal_transport": Method(
        MEMBERSHIP, "optimal_transport", 1e-2, 0.15, ("sinkhorn_iterations", "sinkhorn_tolerance"), fused=False
    ),
    "perturbed": Method(MEMBERSHIP, "perturbed", 1e-2, 0.25, ("samples", "noise_seed"), fused=False),
    "soft_rank": Method(MEMBERSHIP, "soft_rank", 1e-2, 0.5, fused=False),
    "sparse_topk": Method(OBJECTIVE, "sparse_topk", 1e-2, 0.25, ("inverse_temperature",), fused=False),
    "smooth_topk": Method(OBJECTIVE, "smooth_topk", 1e-2, 1.0, ("inverse_temperature",), fused=False),
    "topk_hinge": Method(OBJECTIVE, "topk_hinge", 3e-3, None, ("hinge",), fused=False),
    "topk_entropy": Method(OBJECTIVE, "topk_entropy", 3e-3, None, fused=False),
    "truncated_topk_entropy": Method(OBJECTIVE, "truncated_topk_entropy", 3e-3, None, fused=False),
    "calibrated_topk_hinge": Method(OBJECTIVE, "calibrated_topk_hinge", 3e-3, None, fused=False),
    "comp_sum": Method(OBJECTIVE, "comp_sum", 3e-3, None, ("comp_sum_q",), fused=False),
    "average_topk": Method(OBJECTIVE, "average_topk", 3e-3, None, ("hardest_share",), fused=False),
    "noised_topk": Method(OBJECTIVE, "noised_topk", 3e-3, 1.0, _NOISED, fused=False),
    "imbalanced_noised_topk": Method(
        OBJECTIVE, "noised_topk", 3e-3, 1.0, (*_NOISED, "max_margin", "class_counts"), fused=False
    ),
}
METHODS = tuple(METHOD_DEFAULTS)
RELAXATIONS = tuple(name for name, method in METHOD_DEFAULTS.items() if method.kind == RELAXATION)
FUSED = tuple(name for name, method in METHOD_DEFAULTS.items() if method.fused)
NETWORKS = tuple(name for name, method in METHOD_DEFAULTS.items() if method.module == "sorting_network")
_OF_KIND = {
    CROSS_ENTROPY: (),
    RELAXATION: ("p_k", "m", "inverse_temperature", "top1_mode", "softmax_over", "floor"),
    MEMBERSHIP: ("p_k", "m", "inverse_temperature", "top1_mode", "softmax_over", "floor"),
    OBJECTIVE: ("p_k", "m"),
}


def modules_of(kind: str) -> dict[str, str]:
    """The modules of the methods of a kind, by their names."""
    return {name: method.module for name, method in METHOD_DEFAULTS.items() if method.kind == kind}


def options_read(method: str) -> set[str]:
    """The names of the options of the formula that a method reads, beside the smoothing of labels."""
    own = METHOD_DEFAULTS[method]
    return {*_OF_KIND[own.kind], *own.reads}


def default_inverse_temperature(method: str, distribution: str, m: int) -> float:
    """The inverse temperature that a method takes when none is given; 1 for methods without."""
    default = METHOD_DEFAULTS[method].inverse_temperature
    if default is None:
        return 1.0
    return default(distribution, m) if callable(default) else default

"""The relaxed permutation itself, for research."""

from torch import Tensor

from ...core.arguments import named
from ..loss_defaults import RELAXATIONS
from ..loss_options import LossOptions
from ..option_checks import choice, number
from .relaxations import log_permutation
from .targets import check_floating


@named
def relaxed_topk(
    scores: Tensor,
    k: int,
    *,
    method: str = "neuralsort",
    inverse_temperature: float | None = None,
    distribution: str = "logistic_phi",
    art_lambda: float = 0.5,
    softsort_power: float = 1.0,
    sinkhorn_iterations: int = 10,
    sinkhorn_tolerance: float = 1e-6,
) -> Tensor:
    """The first k rows of a relaxed permutation matrix.

    Networks take the scores as they come, so that the result depends on their order.

    Args:
        scores: (B, n) floating; 16-bit scores are relaxed in float32.
        k: number of ranks, 1..n.
        method: a relaxation, one of `RELAXATIONS`.
        inverse_temperature: 1 / tau, above 0; None takes the method's default.
        distribution: for networks, the CDF of the comparators.
        art_lambda: lambda of `logistic_phi`, in [0, 1).
        softsort_power: exponent of SoftSort's distance.
        sinkhorn_iterations: at most this many iterations.
        sinkhorn_tolerance: where they stop.

    Returns:
        (B, k, n), [b, r, j] the probability that score j has rank r + 1; rows sum to 1.

    Raises:
        ValueError: an argument outside its range.
        TypeError: scores that are not floating.
    """
    options = LossOptions(
        method=choice("method", method, RELAXATIONS),
        m=None,
        inverse_temperature=inverse_temperature,
        distribution=distribution,
        art_lambda=art_lambda,
        softsort_power=softsort_power,
        sinkhorn_iterations=sinkhorn_iterations,
        sinkhorn_tolerance=sinkhorn_tolerance,
    )
    check_floating("scores", scores)
    if scores.ndim != 2:
        raise ValueError(f"scores have shape {tuple(scores.shape)}, expected (B, n)")
    number(
        "k", k, f"a whole number in 1..n, here 1..{scores.shape[1]}", lambda x: 1 <= x <= scores.shape[1], whole=True
    )
    wide = scores if scores.element_size() == 8 else scores.float()
    return log_permutation(wide, k, options).exp()

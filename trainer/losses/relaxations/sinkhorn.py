"""SinkhornSort (Cuturi, Teboul, Vert: Differentiable Ranks and Sorting using Optimal Transport, 2019)."""

import torch
from torch import Tensor

from ...loss_defaults import SINKHORN_STEEPNESS
from ...loss_options import LossOptions
from ..second_derivatives import without_second_derivatives
from .masked import finite_count

_NOTHING = -1e30


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    by_row = SINKHORN_STEEPNESS * (finite_count(scores)[1] - 1).clamp_min(1)
    steep = by_row if options.beta_by_row else options.beta(scores.shape[-1])
    kernel, rows, columns = sinkhorn_log_plan(scores, steep, options.sinkhorn_iterations, options.sinkhorn_tolerance)
    return kernel[:, :k] + rows[:, :k].unsqueeze(-1) + columns.unsqueeze(1)


def squash(scores: Tensor) -> Tensor:
    """sigmoid((s - mean) / sqrt(1 + variance)), over the last axis.

    Small scores are centred, large ones standardised: the squashed scores keep a gradient when one score is far from
    the rest, and equal scores do not divide by zero.
    """
    finite, count = finite_count(scores)
    scores = scores.where(finite, 0.0)
    centred = (scores - scores.sum(dim=-1, keepdim=True) / count).where(finite, 0.0)
    return torch.sigmoid(centred / (1 + centred.square().sum(dim=-1, keepdim=True) / count).sqrt())


def _targets(count: Tensor, size: int) -> Tensor:
    """Equally spaced from 1 to 0 at the ranks of a row's `count` scores (B, 1); (B, size)."""
    return 1 - torch.arange(size, dtype=count.dtype, device=count.device) / (count - 1).clamp_min(1)


def _first_columns(squashed: Tensor, targets: Tensor, finite: Tensor, inverse_temperature: float | Tensor) -> Tensor:
    """Column potentials of the unregularised problem, whose plan is the sorting permutation: a warm start."""
    ordered, order = squashed.where(finite, -1.0).sort(dim=-1, descending=True)
    steps = (ordered[..., :-1] - ordered[..., 1:]) * (targets[..., :-1] + targets[..., 1:])
    sums = torch.nn.functional.pad(steps.cumsum(-1), (1, 0))
    return (torch.empty_like(sums).scatter(-1, order, sums) + squashed.square()) * inverse_temperature


def sinkhorn_log_plan(
    scores: Tensor, inverse_temperature: float | Tensor, iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Entropic optimal transport between squashed scores and m equally spaced targets in [0, 1].

    Args:
        scores: (B, m) floating.
        inverse_temperature: 1 / regularisation, for squared cost; one, or one a row (B, 1).
        iterations: at most this many, each one update of both potentials; differentiated as they ran, from a start that
            is a constant to the gradient, so that second derivatives are refused.
        tolerance: a row keeps its potentials once none of them moves by more than this.

    Returns:
        Logarithm of the kernel (B, m, m), its row r for rank r + 1, and the potentials (B, m) of ranks and of scores;
        the plan, scaled so that its rows sum to 1, is exp(kernel + ranks + scores).
    """
    squashed = squash(without_second_derivatives(scores))
    finite, count = finite_count(scores)
    targets = _targets(count, scores.shape[-1])
    steep = inverse_temperature.unsqueeze(-1) if isinstance(inverse_temperature, Tensor) else inverse_temperature
    kernel = (targets.unsqueeze(-1) - squashed.unsqueeze(-2)).square() * -steep
    kernel = kernel.where(finite.unsqueeze(-2), _NOTHING)
    ranked = torch.arange(scores.shape[-1], device=scores.device) < count
    columns = _first_columns(squashed.detach(), targets, finite, inverse_temperature).where(finite, 0.0)
    rows = -torch.logsumexp(kernel + columns.unsqueeze(-2), dim=-1)
    for _ in range(iterations - 1):
        new = -torch.logsumexp(kernel + rows.where(ranked, _NOTHING).unsqueeze(-1), dim=-2)
        new = new.where(finite, 0.0)
        moving = (new - columns).detach().abs().amax(dim=-1, keepdim=True) > tolerance
        columns = torch.where(moving, new, columns)
        rows = -torch.logsumexp(kernel + columns.unsqueeze(-2), dim=-1)
    return kernel, rows, columns

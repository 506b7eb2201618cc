"""SinkhornSort (Cuturi, Teboul, Vert: Differentiable Ranks and Sorting using Optimal Transport, 2019)."""

import torch
from torch import Tensor


def squash(scores: Tensor) -> Tensor:
    """sigmoid((s - mean) / sqrt(1 + variance)), over the last axis.

    Small scores are centred, large ones standardised: the squashed scores keep a gradient when one score is far from
    the rest, and equal scores do not divide by zero.
    """
    centred = scores - scores.mean(dim=-1, keepdim=True)
    return torch.sigmoid(centred / (1 + centred.square().mean(dim=-1, keepdim=True)).sqrt())


def _targets(scores: Tensor) -> Tensor:
    return torch.linspace(1, 0, scores.shape[-1], dtype=scores.dtype, device=scores.device)


def _first_columns(squashed: Tensor, inverse_temperature: float) -> Tensor:
    """Column potentials of the unregularised problem, whose plan is the sorting permutation: a warm start."""
    ordered, order = squashed.sort(dim=-1, descending=True)
    targets = _targets(squashed)
    steps = (ordered[..., :-1] - ordered[..., 1:]) * (targets[:-1] + targets[1:])
    sums = torch.nn.functional.pad(steps.cumsum(-1), (1, 0))
    return (torch.empty_like(sums).scatter(-1, order, sums) + squashed.square()) * inverse_temperature


def sinkhorn_log_plan(
    scores: Tensor, inverse_temperature: float, iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Entropic optimal transport between squashed scores and m equally spaced targets in [0, 1].

    Args:
        scores: (B, m) floating.
        inverse_temperature: 1 / regularisation, for squared cost.
        iterations: at most this many, each one update of both potentials; differentiated as they ran, from a start that
            is a constant to the gradient.
        tolerance: a row keeps its potentials once none of them moves by more than this.

    Returns:
        Logarithm of the kernel (B, m, m), its row r for rank r + 1, and the potentials (B, m) of ranks and of scores;
        the plan, scaled so that its rows sum to 1, is exp(kernel + ranks + scores).
    """
    squashed = squash(scores)
    kernel = (_targets(scores).unsqueeze(-1) - squashed.unsqueeze(-2)).square() * -inverse_temperature
    columns = _first_columns(squashed.detach(), inverse_temperature)
    rows = -torch.logsumexp(kernel + columns.unsqueeze(-2), dim=-1)
    for _ in range(iterations - 1):
        new = -torch.logsumexp(kernel + rows.unsqueeze(-1), dim=-2)
        moving = (new - columns).detach().abs().amax(dim=-1, keepdim=True) > tolerance
        columns = torch.where(moving, new, columns)
        rows = -torch.logsumexp(kernel + columns.unsqueeze(-2), dim=-1)
    return kernel, rows, columns

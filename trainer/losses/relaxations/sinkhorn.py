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


def sinkhorn_log_plan(
    scores: Tensor, inverse_temperature: float, iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Entropic optimal transport between squashed scores and m equally spaced targets in [0, 1].

    Args:
        scores: (B, m) floating.
        inverse_temperature: 1 / regularisation, for squared cost.
        iterations: at most this many, each one update of both potentials; differentiated as they ran.
        tolerance: a row keeps its potentials once none of them moves by more than this.

    Returns:
        log-kernel (B, m, m) with row r for rank r + 1, and the potentials (B, m) of ranks and of scores; the plan, scaled
        so that its rows sum to 1, is exp(kernel + ranks + scores).
    """
    m = scores.shape[-1]
    targets = torch.linspace(1, 0, m, dtype=scores.dtype, device=scores.device)
    kernel = (targets.unsqueeze(-1) - squash(scores).unsqueeze(-2)).square() * -inverse_temperature
    columns = torch.zeros_like(scores)
    rows = -torch.logsumexp(kernel, dim=-1)
    for _ in range(iterations - 1):
        new = -torch.logsumexp(kernel + rows.unsqueeze(-1), dim=-2)
        moving = (new - columns).detach().abs().amax(dim=-1, keepdim=True) > tolerance
        columns = torch.where(moving, new, columns)
        rows = -torch.logsumexp(kernel + columns.unsqueeze(-2), dim=-1)
    return kernel, rows, columns

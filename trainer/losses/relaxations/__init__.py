"""Relaxed permutations: the label's column, and whole matrices."""

import torch
from torch import Tensor

from ..settings import NETWORKS, Settings
from .masked import finite_count
from .neuralsort import neuralsort_logits
from .sinkhorn import sinkhorn_log_plan
from .softsort import softsort_logits
from .sorting_network import UNREACHED, soft_selection


def label_log_ranks(scores: Tensor, k: int, settings: Settings) -> Tensor:
    """Logarithm of P[r, 0] for r = 1..k: at which ranks the relaxation sees the first candidate.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order.
        k: number of ranks, 1..m.
        settings: the relaxation and its options.

    Returns:
        (B, k) logarithms of probabilities.
    """
    if settings.method in NETWORKS:
        first = torch.full_like(scores, UNREACHED)
        first[:, 0] = 0
        return _through_network(scores, first.unsqueeze(1), k, settings)[:, 0]
    taken = torch.arange(k, device=scores.device) < finite_count(scores)[1]
    return log_permutation(scores, k, settings)[:, :, 0].where(taken, -torch.inf)


def log_permutation(scores: Tensor, k: int, settings: Settings) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    beta = settings.beta(scores.shape[-1])
    if settings.method in NETWORKS:
        order = finite_count(scores)[0].byte().argsort(dim=1, descending=True, stable=True)
        identity = torch.full((scores.shape[-1],) * 2, UNREACHED, dtype=scores.dtype, device=scores.device)
        ordered = identity.fill_diagonal_(0)[order].transpose(1, 2)
        return _through_network(scores.gather(1, order), ordered, k, settings).transpose(1, 2)
    if settings.method == "sinkhorn":
        steep = 10.0 * (finite_count(scores)[1] - 1).clamp_min(1) if settings.beta_by_row else beta
        iterations, tolerance = settings.sinkhorn_iterations, settings.sinkhorn_tolerance
        kernel, rows, columns = sinkhorn_log_plan(scores, steep, iterations, tolerance)
        return kernel[:, :k] + rows[:, :k].unsqueeze(-1) + columns.unsqueeze(1)
    if settings.method == "neuralsort":
        return neuralsort_logits(scores, k, beta).log_softmax(-1)
    if settings.method == "softsort":
        return softsort_logits(scores, k, beta, settings.softsort_power).log_softmax(-1)
    raise ValueError("method 'softmax' has no permutation matrix, expected a relaxation")


def _through_network(scores: Tensor, log_vectors: Tensor, k: int, settings: Settings) -> Tensor:
    return soft_selection(
        scores,
        log_vectors,
        k,
        method=settings.method,
        distribution=settings.distribution,
        inverse_temperature=settings.beta(scores.shape[-1]),
        art_lambda=settings.art_lambda,
    )

"""Relaxed permutations: the label's column, and whole matrices."""

import torch
from torch import Tensor

from ..method_defaults import NETWORKS
from ..options import LossOptions
from .masked import finite_count
from .neuralsort import neuralsort_logits
from .sinkhorn import sinkhorn_log_plan
from .softsort import softsort_logits
from .sorting_network import UNREACHED, soft_selection


def label_log_ranks(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of P[r, 0] for r = 1..k: at which ranks the relaxation sees the first candidate.

    Args:
        scores: (B, m) candidates, the label's score first and the others in descending order.
        k: number of ranks, 1..m.
        options: the relaxation and its options.

    Returns:
        (B, k) logarithms of probabilities.
    """
    if options.method in NETWORKS:
        first = torch.full_like(scores, UNREACHED)
        first[:, 0] = 0
        return _through_network(scores, first.unsqueeze(1), k, options)[:, 0]
    taken = torch.arange(k, device=scores.device) < finite_count(scores)[1]
    return log_permutation(scores, k, options)[:, :, 0].where(taken, -torch.inf)


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    beta = options.beta(scores.shape[-1])
    if options.method in NETWORKS:
        order = finite_count(scores)[0].byte().argsort(dim=1, descending=True, stable=True)
        identity = torch.full((scores.shape[-1],) * 2, UNREACHED, dtype=scores.dtype, device=scores.device)
        ordered = identity.fill_diagonal_(0)[order].transpose(1, 2)
        return _through_network(scores.gather(1, order), ordered, k, options).transpose(1, 2)
    if options.method == "sinkhorn":
        steep = 10.0 * (finite_count(scores)[1] - 1).clamp_min(1) if options.beta_by_row else beta
        iterations, tolerance = options.sinkhorn_iterations, options.sinkhorn_tolerance
        kernel, rows, columns = sinkhorn_log_plan(scores, steep, iterations, tolerance)
        return kernel[:, :k] + rows[:, :k].unsqueeze(-1) + columns.unsqueeze(1)
    if options.method == "neuralsort":
        return neuralsort_logits(scores, k, beta).log_softmax(-1)
    if options.method == "softsort":
        return softsort_logits(scores, k, beta, options.softsort_power).log_softmax(-1)
    raise ValueError("method 'softmax' has no permutation matrix, expected a relaxation")


def _through_network(scores: Tensor, log_vectors: Tensor, k: int, options: LossOptions) -> Tensor:
    return soft_selection(
        scores,
        log_vectors,
        k,
        method=options.method,
        distribution=options.distribution,
        inverse_temperature=options.beta(scores.shape[-1]),
        art_lambda=options.art_lambda,
    )

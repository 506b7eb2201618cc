"""Runs a sorting network softly, on scores and on log-probability vectors at once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ...loss_options import LossOptions
from ..constants import on_device
from ..second_derivatives import refuse_second_derivatives
from .distributions import log_cdf_pair, log_cdf_slopes, probability, steepened
from .masked import below, finite_count
from .networks import network

UNREACHED = -1e30
# Where the host may not ask which scores are masked: up to so many wires each row has a network of its own; else masked
# scores stay on the wires, this far below the others.
_MOST_WIRES = 128
_MASKED_GAP = 1e3


def _schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[list[list[list[float]]]]]:
    return _cached_schedule(method, n, k)


# What torch.compiler.assume_constant_result does; it would import torch's compiler, which takes seconds.
_schedule._dynamo_marked_constant = True  # type: ignore[attr-defined]


@cache
def _cached_schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[list[list[list[float]]]]]:
    """Each layer as every wire's partner (itself when idle), and 1 where the wire gets the higher score, else -1.

    Returns:
        The partners (n,), and the directions (n, 1, 1).
    """
    partners, directions = [], []
    for layer in network(method, n, k):
        partner, direction = list(range(n)), [[[-1.0]] for _ in range(n)]
        for low, high in layer:
            partner[low], partner[high] = high, low
            direction[high] = [[1.0]]
        partners.append(partner)
        directions.append(direction)
    return partners, directions


def label_log_ranks(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """Logarithm of P[r, 0] for r = 1..k, (B, k), for scores (B, m): the label's one-hot vector, pushed through."""
    first = torch.full_like(scores, UNREACHED)
    first[:, 0] = 0
    return soft_selection(scores, first.unsqueeze(1), k, options)[:, 0]


def log_permutation(scores: Tensor, k: int, options: LossOptions) -> Tensor:
    """The logarithm of the first k rows of P, (B, k, m), for scores (B, m)."""
    order = finite_count(scores)[0].byte().argsort(dim=1, descending=True, stable=True)
    identity = torch.full((scores.shape[-1],) * 2, UNREACHED, dtype=scores.dtype, device=scores.device)
    ordered = identity.fill_diagonal_(0)[order].transpose(1, 2)
    return soft_selection(scores.gather(1, order), ordered, k, options).transpose(1, 2)


def soft_selection(scores: Tensor, log_vectors: Tensor, k: int, options: LossOptions) -> Tensor:
    """Push vectors through the soft comparators of a network, that of the scores which are not masked.

    Args:
        scores: (B, n) floating, the scores on the wires; those that are masked (minus infinity) come last.
        log_vectors: (B, L, n), logarithms of L non-negative vectors over the wires; a one-hot vector comes out as its
            wire's column of P. Its zeros are `UNREACHED`, a finite stand-in for minus infinity.
        k: how many ranks to return, 1..n.
        options: `method` is the network; `distribution`, the inverse temperature and `art_lambda` its comparators.

    Returns:
        (B, L, k) logarithms of the vectors at ranks 1..k, `UNREACHED` at ranks that a row's scores do not have.
    """
    method = options.method
    how = (options.distribution, options.beta(scores.shape[-1]), options.art_lambda)
    finite, count = finite_count(scores)
    if _may_ask(scores):
        if finite.all():
            return _one_network(scores, log_vectors, k, method, *how)
        return _network_by_network(scores, log_vectors, count.squeeze(1), k, method, *how)
    if scores.shape[1] > _MOST_WIRES:
        return _one_network(scores.where(finite, below(scores, finite, _MASKED_GAP)), log_vectors, k, method, *how)
    from .row_networks import row_networks

    partners, signs = row_networks(count.squeeze(1).long(), method, scores.shape[1], k)
    out = _run(scores.where(finite, 0.0), log_vectors, partners.unbind(), signs.to(scores).unbind(), *how)
    ranks = count.long() - 1 - torch.arange(k, device=scores.device)
    at = ranks.clamp_min(0).unsqueeze(1).expand(-1, log_vectors.shape[1], -1)
    return out.permute(2, 1, 0).gather(2, at).where((ranks >= 0).unsqueeze(1), UNREACHED)


def _may_ask(scores: Tensor) -> bool:
    """Whether the host may look at values: on a CPU at once, on a GPU where nothing else is exact."""
    if torch.compiler.is_compiling():
        return False
    return scores.is_cpu or (scores.shape[1] > _MOST_WIRES and not torch.cuda.is_current_stream_capturing())


def _one_network(scores: Tensor, log_vectors: Tensor, k: int, method: str, *how: Any) -> Tensor:
    """`soft_selection` where no score is masked."""
    n = scores.shape[1]
    wanted, signs = _schedule(method, n, k)
    partners = on_device(("partners", method, n, k), wanted, scores.device)
    directions = on_device(("directions", method, n, k, scores.dtype), signs, scores.device, scores.dtype)
    return _run(scores, log_vectors, partners, directions, *how)[n - k :].flip(0).permute(2, 1, 0)


def _network_by_network(scores: Tensor, log_vectors: Tensor, counts: Tensor, k: int, method: str, *how: Any) -> Tensor:
    """`soft_selection` of the rows with equally many scores that are not masked, `counts` (B,), together."""
    out = log_vectors.new_full((*log_vectors.shape[:2], k), UNREACHED)
    for count in counts.unique().int().tolist():
        rows, ranks = (counts == count).nonzero().squeeze(1), min(k, count)
        if count:
            part = _one_network(scores[rows, :count], log_vectors[rows, :, :count], ranks, method, *how)
            out[rows, :, :ranks] = part
    return out


def _run(
    scores: Tensor, log_vectors: Tensor, partners: Sequence[Tensor], directions: Sequence[Tensor], *how: Any
) -> Tensor:
    """The log-vectors (n, L, B) behind the last layer."""
    wires, vectors = scores.t().contiguous().unsqueeze(1), log_vectors.permute(2, 1, 0).contiguous()
    out: Tensor = _SoftNetwork.apply(wires, vectors, partners, directions, *how)
    return out


def _of_partners(values: Tensor, partner: Tensor) -> Tensor:
    """What is on each wire's partner, a copy (n, L, B); the partners are those of all rows (n,), or of each (n, B)."""
    if partner.ndim == 1:
        return values.index_select(0, partner)
    return values.gather(0, partner.unsqueeze(1).expand_as(values))


class _SoftNetwork(torch.autograd.Function):
    """Scores (n, 1, B) and log-vectors (n, L, B) through all layers; gives the log-vectors (n, L, B) at the end.

    Every wire does its half of the comparator, so that a layer is few operations on whole tensors; and its own
    backward, because that of a hundred small operations costs more than they do.
    """

    @staticmethod
    def forward(
        ctx: Any,
        wires: Tensor,
        vectors: Tensor,
        partners: Sequence[Tensor],
        directions: Sequence[Tensor],
        distribution: str,
        inverse_temperature: float,
        art_lambda: float,
    ) -> Tensor:
        saved: list[Tensor] = []
        for partner, direction in zip(partners, directions, strict=True):
            gap = _of_partners(wires, partner).sub_(wires)
            v, slope = steepened(gap * -direction, distribution, inverse_temperature, art_lambda)
            log_keep, log_swap = log_cdf_pair(distribution, v)
            swap = probability(log_swap)
            wires = torch.addcmul(wires, swap, gap)
            own, other = log_keep + vectors, _of_partners(vectors, partner).add_(log_swap)
            lead = other - own
            # Not in place: torch 2.11 compiles wrong gradients of what is given in place.
            vectors = torch.maximum(own, other) - lead.abs().sigmoid_().log_()
            slope = slope if isinstance(slope, Tensor) else v.new_tensor(slope)
            saved += [gap, v, slope, probability(log_keep), swap, lead]
        ctx.save_for_backward(*saved, *partners, *directions)
        ctx.layers, ctx.distribution = len(partners), distribution
        return vectors

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        by_vectors = upstream.contiguous()
        by_wires = upstream.new_zeros(len(upstream), 1, upstream.shape[2])
        tensors, layers = ctx.saved_tensors, ctx.layers
        partners, directions = tensors[6 * layers : 7 * layers], tensors[7 * layers :]
        for layer in range(layers - 1, -1, -1):
            saved = tensors[6 * layer : 6 * layer + 6]
            by_wires, by_vectors = _layer_backward(
                by_wires, by_vectors, partners[layer], directions[layer], ctx.distribution, saved
            )
        return by_wires, by_vectors, None, None, None, None, None


def _layer_backward(
    by_wires: Tensor,
    by_vectors: Tensor,
    partner: Tensor,
    direction: Tensor,
    distribution: str,
    saved: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    gap, v, slope, keep, swap, lead = saved
    swapped, kept = by_vectors * torch.sigmoid(lead), by_vectors * torch.sigmoid(-lead)
    keep_slope, swap_slope = log_cdf_slopes(distribution, v, keep, swap)
    by_v = kept.sum(dim=1, keepdim=True).mul_(keep_slope)
    by_v.addcmul_(swapped.sum(dim=1, keepdim=True), swap_slope, value=-1)
    moved = by_wires * swap
    by_v.addcmul_(moved * swap_slope, gap, value=-1)
    by_v += _of_partners(by_v, partner)
    by_wires = (by_wires - moved).add_(_of_partners(moved, partner)).addcmul_(by_v.mul_(slope), direction)
    return by_wires, kept.add_(_of_partners(swapped, partner))

"""Runs a sorting network softly, on scores and on log-probability vectors at once."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..constants import on_device
from ..first_order import first_order_only
from .distributions import log_cdf_pair, log_cdf_slopes, probability, steepened
from .networks import network

UNREACHED = -1e30


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


def soft_selection(
    scores: Tensor,
    log_vectors: Tensor,
    k: int,
    *,
    method: str,
    distribution: str,
    inverse_temperature: float,
    art_lambda: float,
) -> Tensor:
    """Push vectors through the soft comparators of a network.

    Args:
        scores: (B, n) floating, the scores on the wires.
        log_vectors: (B, L, n), logarithms of L non-negative vectors over the wires; a one-hot vector comes out as its
            wire's column of P. Its zeros are `UNREACHED`, a finite stand-in for minus infinity.
        k: how many ranks to return, 1..n.
        method: `odd_even`, `bitonic` or `splitter_selection`.
        distribution: the CDF of the comparators.
        inverse_temperature: steepness of the comparators.
        art_lambda: lambda of `logistic_phi`.

    Returns:
        (B, L, k) logarithms of the vectors at ranks 1..k.
    """
    n = scores.shape[-1]
    wanted, signs = _schedule(method, n, k)
    partners = on_device(("partners", method, n, k), wanted, scores.device)
    directions = on_device(("directions", method, n, k, scores.dtype), signs, scores.device, scores.dtype)
    wires, vectors = scores.t().contiguous().unsqueeze(1), log_vectors.permute(2, 1, 0).contiguous()
    out: Tensor = _SoftNetwork.apply(
        wires, vectors, partners, directions, distribution, inverse_temperature, art_lambda
    )
    return out[n - k :].flip(0).permute(2, 1, 0)


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
        partners: list[Tensor],
        directions: list[Tensor],
        distribution: str,
        inverse_temperature: float,
        art_lambda: float,
    ) -> Tensor:
        saved: list[Tensor] = []
        for partner, direction in zip(partners, directions, strict=True):
            gap = wires.index_select(0, partner).sub_(wires)
            v, slope = steepened(gap * -direction, distribution, inverse_temperature, art_lambda)
            log_keep, log_swap = log_cdf_pair(distribution, v)
            swap = probability(log_swap)
            wires = torch.addcmul(wires, swap, gap)
            own, other = log_keep + vectors, vectors.index_select(0, partner).add_(log_swap)
            lead = other - own
            vectors = torch.maximum(own, other).sub_(lead.abs().sigmoid_().log_())
            slope = slope if isinstance(slope, Tensor) else v.new_tensor(slope)
            saved += [gap, v, slope, probability(log_keep), swap, lead]
        ctx.save_for_backward(*saved)
        ctx.partners, ctx.directions, ctx.distribution = partners, directions, distribution
        return vectors

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        first_order_only()
        by_vectors = upstream.contiguous()
        by_wires = upstream.new_zeros(len(upstream), 1, upstream.shape[2])
        tensors = ctx.saved_tensors
        for layer in range(len(ctx.partners) - 1, -1, -1):
            saved = tensors[6 * layer : 6 * layer + 6]
            by_wires, by_vectors = _layer_backward(
                by_wires, by_vectors, ctx.partners[layer], ctx.directions[layer], ctx.distribution, *saved
            )
        return by_wires, by_vectors, None, None, None, None, None


def _layer_backward(
    by_wires: Tensor,
    by_vectors: Tensor,
    partner: Tensor,
    direction: Tensor,
    distribution: str,
    gap: Tensor,
    v: Tensor,
    slope: Tensor,
    keep: Tensor,
    swap: Tensor,
    lead: Tensor,
) -> tuple[Tensor, Tensor]:
    swapped, kept = by_vectors * torch.sigmoid(lead), by_vectors * torch.sigmoid(-lead)
    keep_slope, swap_slope = log_cdf_slopes(distribution, v, keep, swap)
    by_v = kept.sum(dim=1, keepdim=True).mul_(keep_slope)
    by_v.addcmul_(swapped.sum(dim=1, keepdim=True), swap_slope, value=-1)
    moved = by_wires * swap
    by_v.addcmul_(moved * swap_slope, gap, value=-1)
    by_v += by_v.index_select(0, partner)
    by_wires = (by_wires - moved).add_(moved.index_select(0, partner)).addcmul_(by_v.mul_(slope), direction)
    return by_wires, kept.add_(swapped.index_select(0, partner))

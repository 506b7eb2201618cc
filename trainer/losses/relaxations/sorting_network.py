"""Runs a sorting network softly, on scores and on log-probability vectors at once."""

from functools import cache

import torch
from torch import Tensor

from ..constants import on_device
from .distributions import log_cdf, steepened
from .networks import network

UNREACHED = -1e30


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[int], list[int]]:
    return _cached_schedule(method, n, k)


@cache
def _cached_schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[int], list[int]]:
    """Each layer as a permutation that brings its low, high and idle wires together, and where the top k end up."""
    order = list(range(n))
    permutations, sizes = [], []
    for layer in network(method, n, k):
        busy = [low for low, _ in layer] + [high for _, high in layer]
        wanted = busy + [w for w in range(n) if w not in set(busy)]
        permutations.append([order.index(w) for w in wanted])
        sizes.append(len(layer))
        order = wanted
    return permutations, sizes, [order.index(n - 1 - r) for r in range(k)]


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
    permutations, sizes, top = _schedule(method, scores.shape[-1], k)
    wires = scores.t().unsqueeze(1)
    vectors = log_vectors.permute(2, 1, 0)
    orders = on_device(("schedule", method, scores.shape[-1], k), [*permutations, top], scores.device)
    for order, size in zip(orders, sizes, strict=False):
        wires, vectors = wires.index_select(0, order), vectors.index_select(0, order)
        a, b = wires[:size], wires[size : 2 * size]
        v = steepened(b - a, distribution, inverse_temperature, art_lambda)
        keep, swap = log_cdf(distribution, v), log_cdf(distribution, -v)
        moved = swap.exp() * (b - a)
        wires = torch.cat([a + moved, b - moved, wires[2 * size :]])
        va, vb = vectors[:size], vectors[size : 2 * size]
        low = torch.logaddexp(keep + va, swap + vb)
        high = torch.logaddexp(swap + va, keep + vb)
        vectors = torch.cat([low, high, vectors[2 * size :]])
    return vectors.index_select(0, orders[-1]).permute(2, 1, 0)

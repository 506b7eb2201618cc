"""Runs a sorting network softly, on scores and on log-probability vectors at once."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..constants import on_device
from .distributions import log_cdf_pair, log_cdf_slopes, steepened
from .networks import network

UNREACHED = -1e30


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[list[int]], list[int]]:
    return _cached_schedule(method, n, k)


@cache
def _cached_schedule(method: str, n: int, k: int) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Each layer as a permutation that brings its low, high and idle wires together, and its number of comparators.

    Returns:
        The permutations and last where the top k end up, their inverses, and the numbers.
    """
    order = list(range(n))
    permutations, sizes = [], []
    for layer in network(method, n, k):
        busy = [low for low, _ in layer] + [high for _, high in layer]
        wanted = busy + [w for w in range(n) if w not in set(busy)]
        permutations.append([order.index(w) for w in wanted])
        sizes.append(len(layer))
        order = wanted
    inverses = [sorted(range(n), key=permutation.__getitem__) for permutation in permutations]
    return [*permutations, [order.index(n - 1 - r) for r in range(k)]], inverses, sizes


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
    permutations, backwards, sizes = _schedule(method, n, k)
    orders = on_device(("orders", method, n, k), permutations, scores.device)
    inverses = on_device(("inverses", method, n, k), backwards, scores.device)
    wires, vectors = scores.t().unsqueeze(1), log_vectors.permute(2, 1, 0)
    out: Tensor = _SoftNetwork.apply(
        wires, vectors, orders, inverses, sizes, distribution, inverse_temperature, art_lambda
    )
    return out.permute(2, 1, 0)


class _SoftNetwork(torch.autograd.Function):
    """Scores (n, 1, B) and log-vectors (n, L, B) through all layers; gives the log-vectors at the top ranks (k, L, B).

    Its own backward, because that of a hundred small operations costs more than they do.
    """

    @staticmethod
    def forward(
        ctx: Any,
        wires: Tensor,
        vectors: Tensor,
        orders: list[Tensor],
        inverses: list[Tensor],
        sizes: list[int],
        distribution: str,
        inverse_temperature: float,
        art_lambda: float,
    ) -> Tensor:
        saved: list[Tensor] = []
        for order, size in zip(orders, sizes, strict=False):
            wires, vectors = wires.index_select(0, order), vectors.index_select(0, order)
            a, b, idle = wires[:size], wires[size : 2 * size], wires[2 * size :]
            va, vb, others = vectors[:size], vectors[size : 2 * size], vectors[2 * size :]
            difference = b - a
            v, slope = steepened(difference, distribution, inverse_temperature, art_lambda)
            log_keep, log_swap = log_cdf_pair(distribution, v)
            swap = log_swap.exp()
            moved = swap * difference
            wires = torch.cat([a + moved, b - moved, idle])
            parts = [log_keep + va, log_swap + vb, log_keep + vb, log_swap + va]
            low, high = _log_add(*parts[:2]), _log_add(*parts[2:])
            vectors = torch.cat([low, high, others])
            slope = slope if isinstance(slope, Tensor) else v.new_tensor(slope)
            shares = [part.sub_(whole).exp_() for part, whole in zip(parts, (low, low, high, high), strict=True)]
            saved += [difference, v, slope, log_keep.exp_(), swap, *shares]
        ctx.save_for_backward(*saved)
        ctx.top, ctx.inverses, ctx.sizes = orders[-1], inverses, sizes
        ctx.distribution, ctx.wires = distribution, len(wires)
        return vectors.index_select(0, orders[-1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        by_vectors = upstream.new_zeros(ctx.wires, *upstream.shape[1:]).index_copy_(0, ctx.top, upstream)
        by_wires = upstream.new_zeros(ctx.wires, 1, upstream.shape[2])
        tensors = ctx.saved_tensors
        for layer in range(len(ctx.sizes) - 1, -1, -1):
            saved = tensors[9 * layer : 9 * layer + 9]
            by_wires, by_vectors = _layer_backward(by_wires, by_vectors, ctx.sizes[layer], ctx.distribution, *saved)
            back = ctx.inverses[layer]
            by_wires, by_vectors = by_wires.index_select(0, back), by_vectors.index_select(0, back)
        return by_wires, by_vectors, None, None, None, None, None, None


def _log_add(x: Tensor, y: Tensor) -> Tensor:
    """Value of `logaddexp`, four times as fast on a CPU."""
    return (x - y).abs_().neg_().exp_().add_(1).log_().add_(torch.maximum(x, y))


def _layer_backward(
    by_wires: Tensor,
    by_vectors: Tensor,
    size: int,
    distribution: str,
    difference: Tensor,
    v: Tensor,
    slope: Tensor,
    keep: Tensor,
    swap: Tensor,
    low_share: Tensor,
    from_low_share: Tensor,
    high_share: Tensor,
    from_high_share: Tensor,
) -> tuple[Tensor, Tensor]:
    by_low, by_high, rest = by_vectors[:size], by_vectors[size : 2 * size], by_vectors[2 * size :]
    by_a, by_b, idle = by_wires[:size], by_wires[size : 2 * size], by_wires[2 * size :]
    own_low, own_high = by_low * low_share, by_high * high_share
    from_low, from_high = by_low * from_low_share, by_high * from_high_share
    by_keep = (own_low + own_high).sum(dim=1, keepdim=True)
    by_swap = (from_low + from_high).sum(dim=1, keepdim=True)
    keep_slope, swap_slope = log_cdf_slopes(distribution, v, keep, swap)
    by_moved = by_a - by_b
    density = swap * swap_slope
    by_v = by_keep.mul_(keep_slope).addcmul_(by_swap, swap_slope, value=-1)
    by_v.addcmul_(by_moved, density.mul_(difference), value=-1)
    by_difference = by_moved.mul_(swap).addcmul_(by_v, slope)
    by_wires = torch.cat([by_a - by_difference, by_b + by_difference, idle])
    return by_wires, torch.cat([own_low.add_(from_high), own_high.add_(from_low), rest])

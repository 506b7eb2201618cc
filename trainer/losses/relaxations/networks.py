"""Sorting and selection networks as layers of comparators.

A comparator (low, high) leaves the lower score on wire `low` and the higher one on wire `high`; a network for the top k
leaves the r-th highest score on wire n - r, for r = 1..k.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

Layer = tuple[tuple[int, int], ...]
Network = tuple[Layer, ...]


def _odd_even(n: int, k: int) -> Network:
    """Layers of neighbours, taking turns (transposition sort)."""
    return tuple(tuple((i, i + 1) for i in range(layer % 2, n - 1, 2)) for layer in range(n))


def _bitonic(n: int, k: int) -> Network:
    """Batcher's bitonic sorter for the next power of two, of which the highest n wires are kept."""
    blocks = (n - 1).bit_length()
    dropped = 2**blocks - n
    layers = []
    for block in range(blocks):
        for distance in (2**i for i in range(block, -1, -1)):
            pairs = ((w, w + distance) for w in range(dropped, 2**blocks - distance) if not w & distance)
            layers.append(tuple(_directed(a - dropped, b - dropped, a >> (block + 1) & 1) for a, b in pairs))
    return tuple(layers)


def _directed(a: int, b: int, falling: int) -> tuple[int, int]:
    return (b, a) if falling else (a, b)


def _splitter_selection(n: int, k: int) -> Network:
    """Splitter selection network (Petersen, Kuehne, Borgelt, Deussen 2022), of O(log n) layers for fixed k.

    A splitter compares a set of wires at distances of halving powers of two; the i-th wire of the set then has at
    least 2^popcount(i) - 1 wires above it. Wires with k or more above them are out; wires with the same bound are
    split again, those with the highest bound first, until each bound below k belongs to one wire. Wire 0 of this
    construction is the highest and becomes wire n - 1.
    """
    bound = [0] * n
    free_from = [0] * n
    layers: list[list[tuple[int, int]]] = []
    settled = -1
    changed = True
    while changed:
        changed = False
        for rank in range(k - 1, settled, -1):
            wires = [w for w in range(n) if bound[w] == rank]
            if len(wires) > 1:
                changed = True
                _split(wires, bound, free_from, layers)
        settled += 1
    return tuple(tuple((n - 1 - b, n - 1 - a) for a, b in layer) for layer in layers)


def _split(wires: list[int], bound: list[int], free_from: list[int], layers: list[list[tuple[int, int]]]) -> None:
    depth = (len(wires) - 1).bit_length()
    start = max(free_from[w] for w in wires)
    layers.extend([] for _ in range(start + depth - len(layers)))
    for step in range(depth):
        distance = 2 ** (depth - 1 - step)
        upper = (i for i in range(len(wires) - distance) if not i & distance)
        layers[start + step].extend((wires[i], wires[i + distance]) for i in upper)
    for i, wire in enumerate(wires):
        bound[wire] += 2 ** i.bit_count() - 1
        free_from[wire] = start + depth


_BUILDERS: dict[str, Callable[[int, int], Network]] = {
    "odd_even": _odd_even,
    "bitonic": _bitonic,
    "splitter_selection": _splitter_selection,
}


@cache
def network(method: str, n: int, k: int) -> Network:
    """The comparators of a network.

    Args:
        method: `odd_even`, `bitonic` or `splitter_selection`.
        n: number of wires, at least 1.
        k: number of highest scores that must come out in order, 1..n; only splitter selection depends on it.

    Returns:
        Layers, each with comparators on disjoint wires.
    """
    return _BUILDERS[method](n, k)


@cache
def codes_by_count(method: str, n: int, k: int, width: int) -> np.ndarray:
    """The networks of rows with n, n - 1, ..., 1 scores that are not masked, which come before those that are.

    Args:
        method: `odd_even`, `bitonic` or `splitter_selection`.
        n: number of scores of a row, 1..128.
        k: number of highest scores that must come out in order, where there are so many.
        width: number of wires, at least n.

    Returns:
        (n, layers, width) int32, each wire's partner (itself when idle), plus `width` where it gets the higher score.
    """
    networks = [network(method, count, min(k, count)) for count in range(n, 0, -1)]
    codes = np.tile(np.arange(width, dtype=np.int32), (n, max(map(len, networks)), 1))
    for rows, layers in zip(codes, networks, strict=True):
        for row, layer in zip(rows, layers, strict=False):
            for low, high in layer:
                row[low], row[high] = high, low + width
    return codes

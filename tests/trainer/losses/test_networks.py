"""Sorting and selection networks: their depth, and that they select."""

from itertools import permutations

import numpy as np
import pytest
import torch

from headsmith.trainer.losses import relaxed_topk
from headsmith.trainer.losses.relaxations.networks import network

NETWORKS = ["odd_even", "bitonic", "splitter_selection"]


@pytest.mark.parametrize(("n", "selection", "sorting"), [(1024, 22, 55), (10450, 27, 105)])
def test_depth_is_the_paper_s(n, selection, sorting):
    assert len(network("splitter_selection", n, 5)) == selection
    assert len(network("bitonic", n, 5)) == sorting


def test_odd_even_has_a_layer_for_each_wire():
    assert [len(network("odd_even", n, 1)) for n in (2, 7, 33)] == [2, 7, 33]


def run_network(layers, values: np.ndarray) -> np.ndarray:
    """The values (rows, n) after hard comparators, which leave the lower value on their first wire."""
    values = values.copy()
    for layer in layers:
        low, high = np.array(layer, dtype=int).reshape(-1, 2).T
        a, b = values[:, low], values[:, high]
        values[:, low], values[:, high] = np.minimum(a, b), np.maximum(a, b)
    return values


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize("n", range(1, 13))
def test_zero_one_principle(method, n):
    """Comparators that order every row of zeros and ones order every row."""
    rows = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.int8)
    expected = np.sort(rows, axis=1)
    for k in range(1, n + 1):
        np.testing.assert_array_equal(run_network(network(method, n, k), rows)[:, n - k :], expected[:, n - k :])


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize(("n", "k"), [(13, 5), (50, 5), (252, 10)])
def test_comparators_of_a_layer_share_no_wire(method, n, k):
    for layer in network(method, n, k):
        wires = [wire for comparator in layer for wire in comparator]
        assert len(set(wires)) == len(wires)
        assert set(wires) <= set(range(n))


def assert_selects(method: str, scores: torch.Tensor, k: int):
    relaxed = relaxed_topk(scores, k, method=method, distribution="cauchy", inverse_temperature=1e6)
    torch.testing.assert_close(relaxed.argmax(dim=2), scores.topk(k, dim=1).indices)


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize("n", range(2, 8))
def test_steep_network_sorts_every_permutation(method, n):
    scores = torch.tensor(list(permutations(range(n))), dtype=torch.float32)
    assert_selects(method, scores, n)


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize("n", range(8, 34, 3))
def test_steep_network_selects_from_any_number(method, n):
    generator = torch.Generator().manual_seed(n)
    scores = torch.stack([torch.randperm(n, generator=generator) for _ in range(200)]).float()
    for k in (1, 5, n):
        assert_selects(method, scores, k)

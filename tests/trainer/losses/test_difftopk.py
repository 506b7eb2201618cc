"""Value and gradient against the authors' package, difftopk."""

import math
from itertools import cycle, product

import difftopk
import pytest
import torch
from difftopk.networks import sparse_splitter_selection_network

from headsmith.trainer.losses import topk_cross_entropy

PEER_NAMES = {"bitonic": "bitonic__non_sparse", "splitter_selection": "odd_even"}
DISTRIBUTIONS = ["logistic", "logistic_phi", "cauchy", "gaussian", "reciprocal", "optimal"]
MODES = ["sort", "sm", "smce"]
SIZES = [
    ((7, 13), 5, (0.5, 0, 0, 0.5), 1.0),
    ((33, 252), 16, (0.5, 0, 0, 0, 0.5), 2.0),
    ((64, 1000), 6, (0.2, 0.2, 0.2, 0.2, 0.2), 0.5),
    ((7, 13), None, (0.25, 0.75), 0.7),
    ((64, 1000), 50, (0.1, 0.2, 0.3, 0, 0, 0, 0, 0, 0, 0.4), 1.5),
]
NETWORK_CASES = [
    (method, distribution, mode, *size)
    for (method, distribution, mode), size in zip(
        product(["odd_even", "bitonic", "splitter_selection"], DISTRIBUTIONS, MODES), cycle(SIZES), strict=False
    )
]
PAIRWISE_CASES = [(*case[:2], *case[2]) for case in product(["neuralsort", "softsort"], MODES, SIZES)]
PAIRWISE_CASES += [(method, "sm", (33, 252), None, (0.5, 0, 0, 0, 0.5), 0.5) for method in ("neuralsort", "softsort")]


def batch(shape, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct random scores, and labels of which about half are among the highest scores."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(shape, generator=generator, dtype=dtype) * 2
    anywhere = torch.randint(shape[1], shape[:1], generator=generator)
    high = logits.topk(4, dim=1).indices[:, 2]
    return logits, torch.where(torch.arange(shape[0]) % 2 == 0, high, anywhere)


def peer_loss(method, distribution, mode, shape, m, p_k, inverse_temperature, art_lambda=0.25) -> torch.nn.Module:
    """The package's loss; its splitter selection runs densely, so that it needs no sparse package."""
    peer = difftopk.TopKCrossEntropyLoss(
        PEER_NAMES.get(method, method),
        inverse_temperature=inverse_temperature,
        p_k=list(p_k),
        n=shape[1],
        m=m,
        distribution=distribution,
        art_lambda=art_lambda,
        top1_mode=mode,
    )
    if method == "splitter_selection":
        layers = sparse_splitter_selection_network(m or shape[1], len(p_k))
        peer.top_k_net.sorting_network = [[torch.from_numpy(matrix) for matrix in layer[:4]] for layer in layers]
    elif distribution:
        layers = peer.top_k_net.sorting_network
        peer.top_k_net.sorting_network = [[matrix.double() for matrix in layer] for layer in layers]
    return peer


def wired(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """All classes in the order in which the package wires the candidates that pruning leaves."""
    label = labels.unsqueeze(1)
    others = logits.detach().scatter(1, label, -torch.inf).argsort(dim=1, descending=True)[:, :-1]
    return logits.gather(1, torch.cat([label, others], dim=1)), torch.zeros_like(labels)


def assert_same(peer, dtype, shape, p_k, mode, *, rtol, **options):
    logits, labels = batch(shape, dtype)
    theirs, ours = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    expected = peer(*(wired(theirs, labels) if options["m"] is None else (theirs, labels)))
    rest = sum(p_k[1:]) if mode == "smce" else 1  # `smce` of the package does not divide by the share of k >= 2
    expected = expected + rest * math.log(rest)
    actual = topk_cross_entropy(ours, labels, p_k=p_k, top1_mode=mode, floor=1e-7 / rest, **options)
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=rtol)
    expected.backward()
    actual.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=10 * rtol, atol=rtol * theirs.grad.abs().max().item())


@pytest.fixture
def double_by_default():
    """The package makes its identity matrix in the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def steep_at_ties(monkeypatch):
    """The package does not bound the slope of the activation replacement trick where two wires are almost equal."""
    monkeypatch.setattr("headsmith.trainer.losses.relaxations.distributions.ART_RADIUS", 1e-10)
    monkeypatch.setattr("headsmith.trainer.losses.relaxations.distributions.ART_SLOPE", 1e10)


@pytest.mark.parametrize(("method", "distribution", "mode", "shape", "m", "p_k", "inverse_temperature"), NETWORK_CASES)
@pytest.mark.usefixtures("double_by_default", "steep_at_ties")
def test_networks(method, distribution, mode, shape, m, p_k, inverse_temperature):
    peer = peer_loss(method, distribution, mode, shape, m, p_k, inverse_temperature)
    assert_same(
        peer,
        torch.float64,
        shape,
        p_k,
        mode,
        rtol=1e-6,
        method=method,
        distribution=distribution,
        art_lambda=0.25,
        m=m,
        inverse_temperature=inverse_temperature,
    )


@pytest.mark.parametrize(("method", "mode", "shape", "m", "p_k", "inverse_temperature"), PAIRWISE_CASES)
def test_pairwise(method, mode, shape, m, p_k, inverse_temperature):
    peer = peer_loss(method, None, mode, shape, m, p_k, inverse_temperature)
    assert_same(
        peer,
        torch.float32,
        shape,
        p_k,
        mode,
        rtol=1e-4,
        method=method,
        m=m,
        inverse_temperature=inverse_temperature,
    )

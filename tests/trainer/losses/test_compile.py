"""The loss inside `torch.compile(fullgraph=True)`, and traced without a break in the graph."""

import pytest
import torch

from headsmith.trainer.losses import METHODS, topk_cross_entropy


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def step(logits, labels, method, **options):
    logits = logits.clone().requires_grad_()
    loss = topk_cross_entropy(logits, labels, method=method, **options)
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.detach(), gradient


def loss_of(method, **options):
    return lambda logits, labels: topk_cross_entropy(logits, labels, method=method, **options)


def assert_same_when_compiled(backend, method, **options):
    logits = torch.randn(6, 11, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.tensor([0, 1, -100, 3, 10, 5])
    loss = torch.compile(loss_of(method, **options), fullgraph=True, backend=backend)(logits, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    expected_loss, expected_gradient = step(logits.detach(), labels, method, **options)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", [*METHODS[:4], "splitter_selection"])
def test_one_graph(method):
    assert_same_when_compiled("aot_eager", method, m=6, sinkhorn_iterations=3)


@pytest.mark.parametrize(
    "options",
    [
        {"weight": torch.ones(11), "top1_mode": "sort"},
        {"label_smoothing": 0.1, "top1_mode": "smce"},
        {"reduction": "sum", "softmax_over": "classes"},
    ],
)
def test_one_graph_with_options(options):
    assert_same_when_compiled("aot_eager", "neuralsort", **options)


def test_compiled_code():
    assert_same_when_compiled("inductor", "neuralsort", m=6)

"""The loss inside `torch.compile(fullgraph=True)`, and traced without a break in the graph."""

import pytest
import torch

from headsmith.trainer.losses import SmoothTopKLoss, linear_topk_cross_entropy, topk_cross_entropy
from headsmith.trainer.losses.relaxations import sorting_network


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


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("softmax", {}),
        ("neuralsort", {"weight": torch.ones(11), "top1_mode": "sort"}),
        ("softsort", {"m": 6, "label_smoothing": 0.1, "top1_mode": "smce"}),
        ("bitonic", {"m": 6, "reduction": "sum", "softmax_over": "classes"}),
    ],
)
def test_one_graph(method, options):
    """SinkhornSort and every network: `test_masked_classes.py`."""
    assert_same_when_compiled("aot_eager", method, **options)


def test_a_network_gives_what_was_not_changed_in_place():
    """Graphs that torch 2.11 compiles have wrong gradients where it was."""
    scores, log_vectors = torch.randn(3, 4), torch.randn(3, 1, 4)
    layers = torch.tensor([[1, 0, 3, 2], [2, 3, 0, 1]]).unbind(), torch.ones(2, 4, 1, 1).unbind()
    assert sorting_network._run(scores, log_vectors, *layers, "cauchy", 1.0, 0.25)._version == 0


LOGITS = torch.randn(6, 11, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, -100, 3, 10, 5])
SOFT = LOGITS.flip(0).softmax(dim=1)


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (loss_of("neuralsort", m=6, label_smoothing=0.1), SOFT),
        (loss_of("neuralsort", m=6, sample_p_k=LOGITS[:, :3].softmax(dim=1)), SOFT),
        (SmoothTopKLoss(k=2), SOFT),
        (lambda x, y: linear_topk_cross_entropy(x, SOFT.t() @ SOFT, None, y, m=6, chunk_rows=4), LABELS),
    ],
)
def test_one_graph_of_soft_targets_and_of_a_linear_head(loss, labels):
    assert_compiles(loss, labels)


def test_temperature_as_an_argument_and_sizes_that_change():
    def loss(logits, labels, beta):
        return topk_cross_entropy(logits, labels, method="bitonic", m=2, p_k=[0.5, 0.5], inverse_temperature=beta)

    assert_compiles(loss, LABELS, 0.7, dynamic=True, backend="eager")  # the other tests go below the graph


def assert_compiles(loss, *arguments, backend="aot_eager", **options):
    results = []
    for function in (torch.compile(loss, fullgraph=True, backend=backend, **options), loss):
        logits = LOGITS.clone().requires_grad_()
        value = function(logits, *arguments)
        results.append((value.detach(), *torch.autograd.grad(value, logits)))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


def test_compiled_code():
    """Without the trial programs that ask the C++ compiler which vectors of this CPU it knows."""
    with torch._inductor.config.patch({"cpp.vec_isa_ok": True}):
        assert_same_when_compiled("inductor", "neuralsort", m=6)

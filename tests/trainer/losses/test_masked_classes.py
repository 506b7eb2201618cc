"""Logits of minus infinity: classes that are ruled out have no probability and no gradient."""

import pytest
import torch

from headsmith.trainer.loss_defaults import NETWORKS, RELAXATIONS
from headsmith.trainer.losses import (
    DISTRIBUTIONS,
    METHODS,
    SmoothTopKLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
    relaxed_topk,
    topk_cross_entropy,
)
from headsmith.trainer.losses.relaxations import sorting_network

BASELINES = {
    "hinge alpha": TopKHingeLoss,
    "hinge beta": lambda k, **options: TopKHingeLoss(k, "beta", **options),
    "entropy": TopKEntropyLoss,
    "truncated entropy": TruncatedTopKEntropyLoss,
    "smooth": SmoothTopKLoss,
    "hard": lambda k, **options: SmoothTopKLoss(k, mode="hard", **options),
    "mixed": lambda k, **options: SmoothTopKLoss(k, tau=0.01, mode="mixed", **options),
}


def step(logits, labels, **options):
    logits = logits.clone().requires_grad_()
    loss = topk_cross_entropy(logits, labels, impl="torch", reduction="none", **options)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return loss.detach(), gradient


def options_of(method, top1_mode="sm"):
    p_k = [1.0] if method == "softmax" else [0.5, 0.0, 0.0, 0.0, 0.5]
    return {"method": method, "p_k": p_k, "top1_mode": top1_mode}


@pytest.mark.parametrize("top1_mode", ["sm", "smce", "sort"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [16, None])
def test_masked_classes_are_as_if_they_were_not_there(method, top1_mode, m):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 3, 6, 2])
    masked = torch.cat([logits, torch.full((4, 40), -torch.inf, dtype=torch.float64)], dim=1)
    options = options_of(method, top1_mode)
    loss, gradient = step(masked, labels, m=m, **options)
    expected_loss, expected = step(logits, labels, m=m, **options)
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(gradient[:, :7], expected)
    assert (gradient[:, 7:] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_fewer_classes_than_ranks(method):
    logits = torch.full((2, 20), -torch.inf)
    logits[:, 3], logits[:, 5] = 1.0, 0.5
    loss, gradient = step(logits, torch.tensor([3, 5]), m=8, **options_of(method))
    assert loss.isfinite().all()
    assert gradient.isfinite().all()
    assert (gradient[logits.isinf()] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_masked_label_costs_infinity(method):
    logits = torch.zeros(2, 20)
    logits[0, 3] = -torch.inf
    loss, gradient = step(logits, torch.tensor([3, 3]), m=8, **options_of(method))
    assert loss.isinf().tolist() == [True, False]
    assert gradient[1].isfinite().all()


def ragged(rows: int, classes: int, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows with 1, 2, 3, ... classes that are not masked, anywhere, and a label among them."""
    generator = torch.Generator().manual_seed(rows)
    logits = torch.randn(rows, classes, generator=generator, dtype=dtype)
    order = torch.stack([torch.randperm(classes, generator=generator) for _ in range(rows)])
    for row, columns in enumerate(order):
        logits[row, columns[row % classes + 1 :]] = -torch.inf
    return logits, order[:, 0]


def assert_rows_as_if_alone(logits, labels, loss, gradient, **options):
    """Each row as the same row without its masked columns; `p_k` of ranks that it does not have goes to its last."""
    p_k = torch.as_tensor(options.pop("p_k"), dtype=torch.float64)
    for row, (scores, label) in enumerate(zip(logits, labels, strict=True)):
        kept = scores.isfinite().nonzero().squeeze(1)
        own = torch.cat([p_k[: len(kept) - 1], p_k[len(kept) - 1 :].sum(0, keepdim=True)])
        if len(kept) == 1 and options["top1_mode"] != "sort":
            assert loss[row] < 1e-6  # the only class
            continue
        at = (kept == label).nonzero()[0]
        expected, slope = step(scores[kept].unsqueeze(0), at, p_k=own.tolist(), **options)
        torch.testing.assert_close(loss[row], expected[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(gradient[row, kept], slope[0], rtol=1e-4, atol=1e-6)
    assert (gradient[logits.isinf()] == 0).all()


SIZES = [(distribution, 9, None) for distribution in DISTRIBUTIONS] + [("cauchy", 9, 5), ("logistic", 40, 33)]


@pytest.mark.parametrize(("distribution", "classes", "m"), SIZES)
@pytest.mark.parametrize("method", NETWORKS)
def test_a_row_s_network_has_its_own_size(method, distribution, classes, m):
    logits, labels = ragged(9, classes)
    options = {"method": method, "distribution": distribution, "m": m, "top1_mode": "sort", "p_k": [0.5, 0, 0.2, 0.3]}
    assert_rows_as_if_alone(logits, labels, *step(logits, labels, **options), **options)


@pytest.mark.parametrize(
    ("method", "top1_mode"),
    [("odd_even", "sm"), ("bitonic", "smce"), ("splitter_selection", "sort"), ("sinkhorn", "sm")],
)
def test_in_a_compiled_graph_too(method, top1_mode):
    logits, labels = ragged(4, 4, torch.float32)  # few wires, for a graph holds every layer
    options = {"method": method, "m": None, "top1_mode": top1_mode, "p_k": [0.5, 0, 0.2, 0.3], "sinkhorn_iterations": 3}
    torch.compiler.reset()
    compiled = torch.compile(topk_cross_entropy, fullgraph=True, backend="aot_eager")
    x = logits.clone().requires_grad_()
    loss = compiled(x, labels, reduction="none", **options)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    torch.testing.assert_close((loss.detach(), gradient), step(logits, labels, **options), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", NETWORKS)
def test_rows_by_the_table_of_networks_are_rows_by_groups(method, monkeypatch):
    """What a GPU does where it may not be asked."""
    logits, labels = ragged(20, 19)
    options = {"method": method, "m": None, "p_k": [0.5, 0, 0.2, 0.3]}
    expected = step(logits, labels, **options)
    monkeypatch.setattr(sorting_network, "_may_ask", lambda scores: False)
    torch.testing.assert_close(step(logits, labels, **options), expected)


@pytest.mark.parametrize("method", RELAXATIONS)
def test_masked_scores_have_no_rank(method):
    scores = torch.tensor([[1.0, 3.0, 2.0, 0.5], [0.0, -1.0, 4.0, 2.0]], dtype=torch.float64)
    masked = torch.full((2, 7), -torch.inf, dtype=torch.float64)
    masked[:, [1, 2, 4, 6]] = scores
    relaxed = relaxed_topk(masked, 3, method=method)
    torch.testing.assert_close(relaxed[:, :, [1, 2, 4, 6]], relaxed_topk(scores, 3, method=method))
    assert (relaxed[:, :, [0, 3, 5]] == 0).all()


def baseline(name, k, logits, labels):
    logits = logits.clone().requires_grad_()
    loss = BASELINES[name](k, reduction="none")(logits, labels)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return loss.detach(), gradient


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 2, 5, 7])
@pytest.mark.parametrize("name", BASELINES)
def test_the_other_losses_too_are_as_if_masked_classes_were_not_there(name, k, dtype):
    logits = 2 * torch.randn(5, 7, generator=torch.Generator().manual_seed(1), dtype=dtype)
    labels = torch.tensor([0, 3, 6, 2, 1])
    for left in (7, 5, 2):
        labels = labels.clamp(max=left - 1)
        loss, gradient = baseline(name, k, logits.where(torch.arange(7) < left, -torch.inf), labels)
        assert (gradient[:, left:] == 0).all()
        if k > left:  # the label is among the k best, whatever its score
            assert ((loss == 0) | (torch.tensor(name == "hinge beta"))).all()
        elif left < 7:
            expected_loss, expected = baseline(name, k, logits[:, :left], labels)
            torch.testing.assert_close(loss, expected_loss)
            torch.testing.assert_close(gradient[:, :left], expected)
        assert loss.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("k", [1, 2, 5, 6])
@pytest.mark.parametrize("name", BASELINES)
def test_a_masked_label_costs_infinity_in_the_other_losses_too(name, k):
    logits = torch.randn(3, 6, generator=torch.Generator().manual_seed(2))
    logits[0, 2] = logits[1] = -torch.inf
    loss, gradient = baseline(name, k, logits, torch.tensor([2, 2, 2]))
    assert loss.isinf().tolist() == [True, True, False]
    assert (gradient[:2] == 0).all()
    assert gradient.isfinite().all()

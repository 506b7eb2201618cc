"""Logits of minus infinity: classes that are ruled out have no probability and no gradient."""

import pytest
import torch

from headsmith.trainer.losses import METHODS, topk_cross_entropy

PAIRWISE = ("softmax", "neuralsort", "softsort", "sinkhorn")


def step(logits, labels, **options):
    logits = logits.clone().requires_grad_()
    loss = topk_cross_entropy(logits, labels, impl="torch", reduction="none", **options)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return loss.detach(), gradient


def options_of(method, top1_mode="sm"):
    p_k = [1.0] if method == "softmax" else [0.5, 0.0, 0.0, 0.0, 0.5]
    return {"method": method, "p_k": p_k, "top1_mode": top1_mode}


@pytest.mark.parametrize("top1_mode", ["sm", "smce", "sort"])
@pytest.mark.parametrize("method", PAIRWISE)
@pytest.mark.parametrize("m", [16, None])
def test_masked_classes_are_as_if_they_were_not_there(method, top1_mode, m):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 3, 6, 2])
    masked = torch.cat([logits, torch.full((4, 40), -torch.inf, dtype=torch.float64)], dim=1)
    options = options_of(method, top1_mode)
    if method == "sinkhorn":
        options["inverse_temperature"] = 60.0
    loss, gradient = step(masked, labels, m=m, **options)
    expected_loss, expected = step(logits, labels, m=7, **options)
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

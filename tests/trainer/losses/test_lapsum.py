"""LapSum: by SciPy, and where its closed form is short (two scores, and a threshold that equal scores meet)."""

import math

import pytest
import torch
from memberships import memberships
from scipy.optimize import brentq
from scipy.stats import laplace

from headsmith.trainer.losses import topk_cross_entropy

OPTIONS = {"method": "lapsum", "top1_mode": "sort", "inverse_temperature": 1.0}


@pytest.mark.parametrize("gap", [1.0, 50.0, 1000.0])
def test_a_threshold_in_the_middle(gap):
    """Of two scores F((s - b)) adds up to 1 for b in their middle, however far they are from each other."""
    logits = torch.tensor([[0.0, gap]], requires_grad=True)
    loss = topk_cross_entropy(logits, torch.tensor([0]), p_k=[1.0], m=2, **OPTIONS)
    (gradient,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(loss.item(), gap / 2 + math.log(2))
    torch.testing.assert_close(gradient, torch.tensor([[-0.5, 0.5]]))


def test_a_threshold_that_equal_scores_meet():
    """Where half of n equal scores are to be among the best, all are F(0), whose logarithm has the slope 1."""
    logits = torch.zeros(1, 6, requires_grad=True)
    loss = topk_cross_entropy(logits, torch.tensor([2]), p_k=[0.0, 0.0, 1.0], m=6, **OPTIONS)
    (gradient,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(loss.item(), math.log(2))
    torch.testing.assert_close(gradient, torch.full((1, 6), 1 / 6) - torch.eye(6)[2:3])


@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_threshold_by_a_root_that_scipy_finds(k, alpha):
    for scores in torch.randn(3, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)):
        threshold = brentq(lambda b, s=scores: laplace.cdf((s - b) / alpha).sum() - k, -50, 50, xtol=1e-14)
        found = memberships(scores, k, "lapsum", inverse_temperature=1 / alpha)
        assert found == pytest.approx(laplace.cdf((scores - threshold) / alpha).tolist(), abs=1e-9)

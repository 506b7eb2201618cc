"""Perturbed top-k: in closed form for two scores, by quadrature for more, and its noise."""

import pytest
import torch
from memberships import log_membership, memberships
from scipy.integrate import quad
from scipy.stats import norm

from headsmith.trainer.losses import TopKCrossEntropy, topk_cross_entropy

SCORES = torch.tensor([0.4, -0.3, 1.1, 0.2], dtype=torch.float64)


def by_quadrature(label: int, k: int, sigma: float) -> float:
    """P(fewer than k others are above the label), given the label's own noise, added up over the sets of those."""
    others = [score for i, score in enumerate(SCORES.tolist()) if i != label]

    def density(x: float) -> float:
        above = [norm.sf((x - score) / sigma) for score in others]
        chances = [1.0, 0.0, 0.0, 0.0]  # of 0, 1, ... others above
        for p in above:
            chances = [chances[i] * (1 - p) + (chances[i - 1] * p if i else 0) for i in range(4)]
        return sum(chances[:k]) * norm.pdf((x - SCORES[label].item()) / sigma) / sigma

    return quad(density, -12, 12)[0]


@pytest.mark.parametrize("sigma", [0.5, 2.0])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_probability_by_quadrature(sigma, k):
    options = {"samples": 100_000, "inverse_temperature": 1 / sigma}
    expected = [by_quadrature(label, k, sigma) for label in range(4)]
    assert memberships(SCORES, k, "perturbed", **options) == pytest.approx(expected, abs=3e-3)


@pytest.mark.parametrize("gap", [-1.0, 0.0, 2.0])
def test_two_scores_in_closed_form(gap):
    """The difference of their noise has the deviation sqrt(2) sigma."""
    scores = torch.tensor([gap, 0.0], dtype=torch.float64, requires_grad=True)
    log_p = log_membership(scores, 0, 1, "perturbed", samples=100_000, inverse_temperature=1.0)
    (gradient,) = torch.autograd.grad(log_p.exp(), scores)
    assert log_p.exp().item() == pytest.approx(norm.cdf(gap / 2**0.5), abs=3e-3)
    assert gradient.tolist() == pytest.approx([norm.pdf(gap, scale=2**0.5), -norm.pdf(gap, scale=2**0.5)], abs=3e-3)


@pytest.mark.parametrize("lowest", [-2e2, -2e4, -2e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_label_that_no_draw_puts_first_still_moves(lowest, dtype):
    """The slope of log Phi(x) is -x far below 0."""
    scores = torch.tensor([lowest, 0.0, 1.0], dtype=dtype, requires_grad=True)
    log_p = log_membership(scores, 0, 1, "perturbed", samples=4, inverse_temperature=1.0)
    (gradient,) = torch.autograd.grad(log_p, scores)
    assert log_p.isfinite()
    assert gradient[0].item() == pytest.approx(-lowest, rel=0.02)


def test_equal_seeds_give_equal_noise():
    logits, labels = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)), torch.arange(6)
    options = {"method": "perturbed", "samples": 5}
    first = TopKCrossEntropy(noise_seed=1, **options)(logits, labels)
    torch.manual_seed(9)
    assert torch.equal(topk_cross_entropy(logits, labels, noise_seed=1, **options), first)
    assert topk_cross_entropy(logits, labels, noise_seed=2, **options) != first

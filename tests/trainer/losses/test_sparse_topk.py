"""The loss of sparse top-k: the sparsemax loss for k = 1, and a convex program that SciPy solves for more."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from headsmith.trainer.losses import topk_cross_entropy
from headsmith.trainer.losses.objectives.sparse_topk import capped_simplex

SCORES = torch.randn(4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 3, 6, 2])


def losses(scores, labels, k, **options):
    p_k = [0.0] * (k - 1) + [1.0]
    return topk_cross_entropy(scores, labels, method="sparse_topk", p_k=p_k, m=None, reduction="none", **options)


def highest(scores, k, penalty, label=None):
    """The maximum of <s, p> - penalty / 2 |p|^2 over 0 <= p <= 1 with sum k, and its p; of the label's 1 if asked."""
    bounds = [(float(i == label), 1.0) for i in range(len(scores))]
    found = minimize(
        lambda p: penalty / 2 * p @ p - scores @ p,
        np.full(len(scores), k / len(scores)),
        jac=lambda p: penalty * p - scores,
        bounds=bounds,
        constraints={"type": "eq", "fun": lambda p: p.sum() - k, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.success
    return -found.fun, found.x


@pytest.mark.parametrize("penalty", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_the_convex_program(k, penalty):
    scores = SCORES.clone().requires_grad_()
    found = losses(scores, LABELS, k, inverse_temperature=1 / penalty)
    (gradient,) = torch.autograd.grad(found.sum(), scores)
    for row, label, loss, slope in zip(SCORES.numpy(), LABELS.tolist(), found.tolist(), gradient, strict=True):
        value, mask = highest(row, k, penalty)
        with_label, mask_with_label = highest(row, k, penalty, label)
        assert loss == pytest.approx(value - with_label, abs=1e-7)
        assert slope.numpy() == pytest.approx(mask - mask_with_label, abs=1e-4)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_top_1_is_the_sparsemax_loss(scale):
    """Martins and Astudillo (2016), equation 14."""
    for row, label in zip(scale * SCORES, LABELS, strict=True):
        ordered = row.sort(descending=True).values
        sums = ordered.cumsum(0)
        size = int((1 + torch.arange(1, 8) * ordered > sums).sum())
        tau = (sums[size - 1] - 1) / size
        expected = -row[label] + 0.5 * (ordered[:size] ** 2 - tau**2).sum() + 0.5
        found = losses(row.unsqueeze(0), label.unsqueeze(0), 1, inverse_temperature=1.0)
        torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_finite_differences(k):
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: losses(x, LABELS, k, inverse_temperature=0.5), scores)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4, 1e30])
def test_the_mask_sums_to_k(scale):
    for dtype in (torch.float32, torch.float64):
        scores = (torch.cat([SCORES, SCORES.round(), torch.zeros(1, 7)]) * scale).to(dtype)
        mask = capped_simplex(scores, 7)
        assert ((mask >= 0) & (mask <= 1)).all()
        torch.testing.assert_close(mask.sum(-1), torch.arange(1, 8).to(dtype).expand(9, 7), rtol=1e-5, atol=0)


@pytest.mark.parametrize("gap", [30.0, 1e4])
def test_a_label_far_below_the_rest_costs_the_gap_and_moves(gap):
    """Beyond lambda the loss is linear: the way to the third of three equal scores."""
    scores = torch.tensor([[-gap, 0.0, 0.0, 0.0]], requires_grad=True)
    loss = losses(scores, torch.tensor([0]), 3, inverse_temperature=1.0)
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert loss.item() == pytest.approx(gap + 0.5 - 1.5 + 2 / 3)
    assert gradient.tolist()[0] == pytest.approx([-1.0, 1 / 3, 1 / 3, 1 / 3])

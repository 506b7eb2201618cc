"""SinkhornSort against the solver of Python Optimal Transport."""

import ot
import pytest
import torch

from headsmith.trainer.losses import default_inverse_temperature, relaxed_topk, topk_cross_entropy

CONVERGED = {"method": "sinkhorn", "sinkhorn_iterations": 1500, "sinkhorn_tolerance": 0}


def peer_plan(scores: torch.Tensor, inverse_temperature: float) -> torch.Tensor:
    """(B, m, m), row r for rank r + 1: POT's plan between equally spaced targets and the squashed scores."""
    m = scores.shape[1]
    mass = torch.full((m,), 1 / m, dtype=scores.dtype)
    targets = torch.linspace(1, 0, m, dtype=scores.dtype)
    centred = scores - scores.mean(dim=1, keepdim=True)
    squashed = torch.sigmoid(centred / (1 + scores.var(dim=1, keepdim=True, correction=0)).sqrt())
    cost = (targets[:, None] - squashed[:, None, :]) ** 2
    options = {"method": "sinkhorn_log", "numItermax": 20000, "stopThr": 1e-12}
    return torch.stack([m * ot.sinkhorn(mass, mass, row, 1 / inverse_temperature, **options) for row in cost])


def random_scores(rows: int, m: int) -> torch.Tensor:
    return 2 * torch.randn(rows, m, dtype=torch.float64, generator=torch.Generator().manual_seed(m))


@pytest.mark.parametrize(("m", "inverse_temperature"), [(2, 1), (5, 5), (5, 50), (8, 70), (16, 100), (50, 300)])
def test_plan(m, inverse_temperature):
    scores = random_scores(3, m)
    plan = relaxed_topk(scores, m, inverse_temperature=inverse_temperature, **CONVERGED)
    torch.testing.assert_close(plan, peer_plan(scores, inverse_temperature), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("m", [5, 16, 50])
def test_default_iterations_come_close(m):
    scores = random_scores(3, m)
    plan = relaxed_topk(scores, 5, method="sinkhorn")
    peer = peer_plan(scores, default_inverse_temperature("sinkhorn", "logistic", m))
    torch.testing.assert_close(plan, peer[:, :5], rtol=0, atol=0.02)


@pytest.mark.parametrize("top1_mode", ["sort", "sm", "smce"])
def test_loss_and_gradient(top1_mode):
    p_k = (0.25, 0, 0.75)
    ours, theirs = (random_scores(4, 7).requires_grad_() for _ in range(2))
    labels = torch.tensor([0, 3, 6, 2])
    loss = topk_cross_entropy(ours, labels, p_k=p_k, m=None, inverse_temperature=30, top1_mode=top1_mode, **CONVERGED)
    column = peer_plan(theirs, 30)[torch.arange(4), :, labels]
    top1, top3 = column[:, 0], column[:, :3].sum(dim=1)
    softmax = theirs.softmax(dim=1)[torch.arange(4), labels]
    expected = {
        "sort": -(0.25 * top1 + 0.75 * top3).log(),
        "sm": -(0.25 * softmax + 0.75 * top3).log(),
        "smce": -0.25 * softmax.log() - 0.75 * top3.log(),
    }[top1_mode].mean()
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-9)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-8)

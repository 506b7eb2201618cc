"""SOFT top-k: the plan of POT's Sinkhorn between the scores and two points."""

import numpy as np
import ot
import pytest
import torch
from memberships import memberships

SCORES = torch.randn(3, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("k", [1, 4, 8])
@pytest.mark.parametrize("scores", SCORES)
def test_the_plan_of_pot(scores, k, epsilon):
    n = len(scores)
    cost = (scores.numpy()[:, None] - np.array([0.0, 1.0])) ** 2
    plan = ot.sinkhorn(
        np.full(n, 1 / n),
        np.array([(n - k) / n, k / n]),
        cost,
        reg=epsilon,
        method="sinkhorn_log",
        numItermax=100_000,
        stopThr=1e-12,
    )
    found = memberships(scores, k, "optimal_transport", inverse_temperature=1 / epsilon)
    assert found == pytest.approx((n * plan[:, 1]).tolist(), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_memberships_add_up_to_k(scale, k):
    """Within the ten iterations of the default, wherever the scores lie."""
    for scores in (*SCORES, SCORES[0].abs().log(), (SCORES[1] > 0).double()):
        found = memberships(scale * scores, k, "optimal_transport", sinkhorn_tolerance=0)
        assert sum(found) == pytest.approx(k, abs=1e-8)


def test_fewer_iterations_are_less_exact():
    found = [sum(memberships(3 * SCORES[0], 3, "optimal_transport", sinkhorn_iterations=n)) for n in (1, 2)]
    assert 1e-5 < abs(found[0] - 3) < 1e-2
    assert abs(found[1] - 3) < abs(found[0] - 3) / 10

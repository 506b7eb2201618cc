"""The comparators' distributions against scipy, and their slopes at and far from equal scores."""

import numpy as np
import pytest
import torch
from scipy import stats

from headsmith.trainer.losses.relaxations.distributions import log_cdf, steepened

PEERS = {"logistic": stats.logistic, "cauchy": stats.cauchy, "gaussian": stats.norm}
POINTS = np.array([-1e5, -1e3, -100, -30, -5, -1, -0.25, -0.1, 0, 0.1, 0.25, 1, 5, 30])
DENSITY_AT_0 = {
    "logistic": 0.25,
    "cauchy": 1 / np.pi,
    "gaussian": (2 * np.pi) ** -0.5,
    "reciprocal": 0.25,
    "optimal": 1,
}


def value_and_slope(distribution: str, points, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    v = torch.tensor(points, dtype=dtype, requires_grad=True)
    value = log_cdf(distribution, v)
    (slope,) = torch.autograd.grad(value.sum(), v)
    return value.detach(), slope


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
@pytest.mark.parametrize("distribution", PEERS)
def test_value_and_slope(distribution, dtype, rtol):
    peer = PEERS[distribution]
    value, slope = value_and_slope(distribution, POINTS, dtype)
    np.testing.assert_allclose(value, peer.logcdf(POINTS), rtol=rtol, atol=1e-7)
    with np.errstate(under="ignore"):
        expected = np.exp(peer.logpdf(POINTS[2:]) - peer.logcdf(POINTS[2:]))
    np.testing.assert_allclose(slope[2:], expected, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("distribution", ["reciprocal", "optimal"])
def test_heavy_tails_by_their_formulas(distribution):
    value, _ = value_and_slope(distribution, POINTS, torch.float64)
    tail = 1 - 1 / (16 * np.maximum(np.abs(POINTS), 0.25))
    expected = {
        "reciprocal": 0.5 * (POINTS / (2 + np.abs(POINTS)) + 1),
        "optimal": np.where(np.abs(POINTS) <= 0.25, POINTS + 0.5, np.where(POINTS > 0, tail, 1 - tail)),
    }[distribution]
    np.testing.assert_allclose(value.exp(), expected, rtol=1e-9)


@pytest.mark.parametrize("distribution", DENSITY_AT_0)
def test_slope_at_equal_scores(distribution):
    value, slope = value_and_slope(distribution, [0.0, -0.0], torch.float32)
    np.testing.assert_allclose(value.exp(), 0.5, rtol=1e-6)
    np.testing.assert_allclose(slope, 2 * DENSITY_AT_0[distribution], rtol=1e-6)


def test_slope_of_optimal_where_its_pieces_meet():
    _, slope = value_and_slope("optimal", [-0.25, 0.25], torch.float64)
    np.testing.assert_allclose(slope, [1 / 0.25, 1 / 0.75])


def test_gaussian_slope_far_out_is_the_distance():
    """The inverse Mills ratio: pdf(v) / cdf(v) is |v| for v far below 0."""
    far = -np.logspace(3, 8, 6)
    _, slope = value_and_slope("gaussian", far, torch.float32)
    np.testing.assert_allclose(slope, -far, rtol=1e-5)


@pytest.mark.parametrize("distribution", DENSITY_AT_0)
def test_finite_at_huge_differences_and_nan_at_nan(distribution):
    value, slope = value_and_slope(distribution, [-1e30, 1e30], torch.float32)
    assert value.isfinite().all()
    assert slope.isfinite().all()
    assert log_cdf(distribution, torch.tensor(torch.nan)).isnan()


@pytest.mark.parametrize("art_lambda", [0.0, 0.25, 0.5, 0.9])
def test_activation_replacement(art_lambda):
    difference = torch.tensor([-7.0, -0.5, -2e-4, 0.01, 3.0], dtype=torch.float64)
    v, slope = steepened(difference, "logistic_phi", 3.0, art_lambda)
    torch.testing.assert_close(v, 3 * difference / difference.abs() ** art_lambda)
    torch.testing.assert_close(slope, 3 * ((1 - art_lambda) * difference.abs() ** -art_lambda).clamp_max(10))


@pytest.mark.parametrize("art_lambda", [0.25, 0.5, 0.9])
def test_the_slope_at_equal_scores_is_bounded(art_lambda):
    v, slope = steepened(torch.zeros(1), "logistic_phi", 2.0, art_lambda)
    assert v.item() == 0
    assert 2 <= slope.item() <= 20

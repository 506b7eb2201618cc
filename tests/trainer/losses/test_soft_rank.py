"""Soft ranks: those of the authors' program, and by scikit-learn's isotonic regression."""

import numpy as np
import pytest
import torch
from memberships import log_membership
from sklearn.isotonic import isotonic_regression

SCORES = [0.3, 2.0, -1.0, 1.1, 0.9, -0.2]
# google-research/fast-soft-sort, SoftRank(SCORES, direction="DESCENDING", regularization_strength=epsilon): compute(),
# and the gradient of the first of them, vjp.
AUTHORS = [
    (0.5, [3.95, 1.0, 6.0, 2.35, 2.75, 4.95], [-1.5, 0, 0, 0.5, 0.5, 0.5]),
    (1.0, [3.7166667, 2.0166667, 5.0166667, 2.9166667, 3.1166667, 4.2166667], [-5 / 6, *[1 / 6] * 5]),
    (2.0, [3.6083333, 2.7583333, 4.2583333, 3.2083333, 3.3083333, 3.8583333], [-5 / 12, *[1 / 12] * 5]),
]


@pytest.mark.parametrize(("epsilon", "ranks", "gradient"), AUTHORS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_authors_ranks(epsilon, ranks, gradient, k):
    scores = torch.tensor(SCORES, dtype=torch.float64)
    options = {"method": "soft_rank", "inverse_temperature": 1 / epsilon}
    found = [-log_membership(scores, label, k, **options).item() for label in range(6)]
    assert found == pytest.approx([max(rank - k, 0) for rank in ranks], abs=1e-6)
    slope = torch.func.grad(lambda x: -log_membership(x, 0, k, **options))(scores)
    assert slope.tolist() == pytest.approx([g * (ranks[0] > k) for g in gradient])


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e4])
def test_the_ranks_by_isotonic_regression(scale):
    generator = np.random.default_rng(0)
    for _ in range(5):
        scores = scale * generator.standard_normal(12).round(1)  # some are equal
        order = np.argsort(-scores, kind="stable")
        ordered = -scores[order]
        expected = np.empty(12)
        expected[order] = ordered - isotonic_regression(ordered - np.arange(1, 13))
        for label, rank in enumerate(expected):
            found = -log_membership(torch.tensor(scores), label, 1, "soft_rank", inverse_temperature=1.0)
            assert found.item() == pytest.approx(rank - 1, abs=1e-6)

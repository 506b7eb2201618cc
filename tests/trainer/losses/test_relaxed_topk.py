"""The relaxed permutation matrix: rows and columns, the cold limit, ties."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headsmith.trainer.loss_defaults import NETWORKS
from headsmith.trainer.losses import DISTRIBUTIONS, relaxed_topk

RELAXATIONS = [{"method": method} for method in ("neuralsort", "softsort", "sinkhorn")] + [
    {"method": method, "distribution": distribution} for method in NETWORKS for distribution in DISTRIBUTIONS
]
every_relaxation = pytest.mark.parametrize("options", RELAXATIONS, ids=lambda options: "-".join(options.values()))
quick = settings(max_examples=20, deadline=None, derandomize=True)
scores_of = st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=20)


@every_relaxation
@quick
@given(scores=scores_of, data=st.data())
def test_rows_sum_to_1(options, scores, data):
    k = data.draw(st.integers(1, len(scores)))
    relaxed = relaxed_topk(torch.tensor([scores]), k, **options)
    assert relaxed.shape == (1, k, len(scores))
    assert (relaxed >= 0).all()
    torch.testing.assert_close(relaxed.sum(dim=2), torch.ones(1, k), rtol=0, atol=1e-4)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("method", NETWORKS)
@quick
@given(scores=scores_of)
def test_columns_of_a_network_sum_to_1(method, distribution, scores):
    n = len(scores)
    relaxed = relaxed_topk(torch.tensor([scores]), n, method=method, distribution=distribution)
    torch.testing.assert_close(relaxed.sum(dim=1), torch.ones(1, n), rtol=0, atol=1e-4)


@every_relaxation
def test_cold_limit_is_the_permutation(options):
    generator = torch.Generator().manual_seed(1)
    scores = torch.stack([torch.randperm(11, generator=generator) for _ in range(20)]).double()
    relaxed = relaxed_topk(scores, 11, inverse_temperature=1e8, **options)
    order = scores.argsort(dim=1, descending=True)
    permutation = torch.nn.functional.one_hot(order, 11).double()
    torch.testing.assert_close(relaxed, permutation, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ["neuralsort", "softsort", "sinkhorn"])
@pytest.mark.parametrize("inverse_temperature", [0.5, 1e4])
def test_equal_scores_share_equally(method, inverse_temperature):
    scores = torch.tensor([[1.0, 3.0, 1.0, 3.0, 3.0], [2.0] * 5])
    relaxed = relaxed_topk(scores, 5, method=method, inverse_temperature=inverse_temperature)
    assert relaxed.isfinite().all()
    for tied in ([0, 1, 2, 3, 4], [0, 2], [1, 3, 4]):
        shares = relaxed[1 if len(tied) == 5 else 0][:, tied]
        torch.testing.assert_close(shares, shares[:, :1].expand_as(shares), rtol=1e-4, atol=1e-6)


def test_neuralsort_by_its_formula():
    """Grover et al. (2019), equation 5, written with loops."""
    scores, tau = [0.3, 2.0, -1.0, 1.1], 0.7
    n = len(scores)
    deviations = [sum(abs(a - b) for b in scores) for a in scores]
    rows = [
        torch.tensor([((n + 1 - 2 * r) * s - d) / tau for s, d in zip(scores, deviations, strict=True)]).softmax(dim=0)
        for r in range(1, n + 1)
    ]
    relaxed = relaxed_topk(torch.tensor([scores]), n, method="neuralsort", inverse_temperature=1 / tau)
    torch.testing.assert_close(relaxed[0], torch.stack(rows))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_softsort_by_its_formula(power):
    """Prillo and Eisenschlos (2020), equation 3."""
    scores = torch.tensor([0.3, 2.0, -1.0, 1.1])
    descending = scores.sort(descending=True).values
    expected = (-((descending[:, None] - scores).abs() ** power) / 0.7).softmax(dim=1)
    relaxed = relaxed_topk(scores[None], 4, method="softsort", inverse_temperature=1 / 0.7, softsort_power=power)
    torch.testing.assert_close(relaxed[0], expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_type_of_the_result(dtype):
    scores = torch.arange(6).to(dtype)[None]
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert relaxed_topk(scores, 2).dtype == expected

"""Gradients: against finite differences, and finite where scores are equal, huge or far apart."""

import math

import pytest
import torch

from headsmith.trainer.loss_defaults import NETWORKS
from headsmith.trainer.losses import DISTRIBUTIONS, METHODS, topk_cross_entropy

MODES = ["sort", "sm", "smce"]
RELAXATIONS = [{"method": method} for method in ("neuralsort", "softsort", "sinkhorn")] + [
    {"method": method, "distribution": distribution} for method in NETWORKS for distribution in DISTRIBUTIONS
]
# Each distribution on one network: what a score or a temperature does to a CDF is the same on all of them.
PAIRED = RELAXATIONS[:3] + [
    {"method": NETWORKS[i % 3], "distribution": distribution} for i, distribution in enumerate(DISTRIBUTIONS)
]


def name(options) -> str:
    return "-".join(options.values())


def loss_and_gradient(logits, labels, **options) -> tuple[torch.Tensor, torch.Tensor]:
    logits = logits.clone().requires_grad_()
    loss = topk_cross_entropy(logits, torch.tensor(labels), reduction="none", **options)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return loss.detach(), gradient


def assert_finite(*tensors):
    assert all(tensor.isfinite().all() for tensor in tensors)


@pytest.mark.parametrize(
    ("options", "top1_mode", "m"),
    [(options, *case) for options in RELAXATIONS for case in (("sort", None), ("sm", 5), ("smce", 5))]
    + [(options, *case) for options in PAIRED for case in (("sort", 5), ("sm", None), ("smce", None))],
    ids=lambda value: name(value) if isinstance(value, dict) else str(value),
)
def test_finite_differences(options, top1_mode, m):
    """Of SinkhornSort when converged, for its warm start counts as a constant."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(2, 7, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.tensor([4, 0])

    common = {"p_k": [0.5, 0.2, 0.3], "m": m, "top1_mode": top1_mode, "softmax_over": "classes"}
    converged = {"sinkhorn_iterations": 100, "sinkhorn_tolerance": 0}
    assert torch.autograd.gradcheck(lambda x: topk_cross_entropy(x, labels, **common, **converged, **options), logits)


def test_finite_differences_of_softmax():
    logits = torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: topk_cross_entropy(x, torch.tensor([4, 0]), method="softmax"), logits)


@pytest.mark.parametrize("softsort_power", [1.0, 1.5, 2.0])
def test_finite_differences_of_softsort_powers(softsort_power):
    logits = torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    options = {"method": "softsort", "softsort_power": softsort_power, "m": 6, "top1_mode": "sort"}
    assert torch.autograd.gradcheck(lambda x: topk_cross_entropy(x, torch.tensor([4, 0]), **options), logits)


@pytest.mark.parametrize("top1_mode", MODES)
@pytest.mark.parametrize("options", RELAXATIONS, ids=name)
def test_zero_head_and_ties(options, top1_mode):
    """Moderate: on the first step of a head the label's score goes up, and by a bounded amount."""
    ties = torch.tensor([[0.0] * 20, [1.0] * 10 + [0.0] * 10, [2.0, 2.0] + [-1.0] * 18])
    loss, gradient = loss_and_gradient(ties, [3, 12, 1], top1_mode=top1_mode, **options)
    assert_finite(loss, gradient)
    assert gradient.abs().max() < 25
    if options["method"] != "softsort":  # whose distance |s_[r] - s_j| has its kink there
        assert gradient[0, 3] < -0.01


@pytest.mark.parametrize("top1_mode", MODES)
@pytest.mark.parametrize("method", METHODS[1:])
def test_zeros_are_as_good_a_start_as_any(method, top1_mode):
    """With default settings no row of equal scores outweighs the others."""
    _, gradient = loss_and_gradient(torch.zeros(1, 1000), [7], method=method, p_k=[0.2] * 5, top1_mode=top1_mode)
    assert gradient.norm() <= 10


@pytest.mark.parametrize("scale", [1e4, 1e10, 1e30])
@pytest.mark.parametrize("options", PAIRED, ids=name)
def test_huge_scores(options, scale):
    logits = torch.randn(4, 20, generator=torch.Generator().manual_seed(5)).clamp(-1, 1) * scale
    for top1_mode in MODES:
        assert_finite(*loss_and_gradient(logits, [3, 2, 1, 0], top1_mode=top1_mode, **options))


@pytest.mark.parametrize("top1_mode", MODES)
@pytest.mark.parametrize("options", PAIRED, ids=name)
def test_label_far_below_the_rest(options, top1_mode):
    logits = torch.randn(1, 40, generator=torch.Generator().manual_seed(5))
    logits[0, 7] = -30
    loss, gradient = loss_and_gradient(logits, [7], top1_mode=top1_mode, **options)
    assert_finite(loss, gradient)
    assert gradient[0, 7] < -0.005


@pytest.mark.parametrize("inverse_temperature", [1e-4, 1e-2, 1, 1e2, 1e4])
@pytest.mark.parametrize("options", PAIRED, ids=name)
def test_any_temperature(options, inverse_temperature):
    logits = 10 * torch.randn(6, 1000, generator=torch.Generator().manual_seed(7))
    labels = [*logits[:3].argmax(dim=1).tolist(), 1, 2, 3]
    for top1_mode in MODES:
        options = options | {"top1_mode": top1_mode, "inverse_temperature": inverse_temperature}
        assert_finite(*loss_and_gradient(logits, labels, **options))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{"method": "softmax"}, *PAIRED], ids=name)
def test_saturated_rows_in_16_bits(options, dtype):
    """Where 1 - 1e-6 is 1: loss and gradient within 1 % of float32."""
    logits = torch.zeros(2, 16)
    logits[:, 0] = 30
    loss, gradient = loss_and_gradient(logits.to(dtype), [0, 1], **options)
    expected_loss, expected_gradient = loss_and_gradient(logits, [0, 1], **options)
    assert gradient.dtype == dtype
    torch.testing.assert_close(loss, expected_loss, rtol=0.01, atol=1e-6)
    torch.testing.assert_close(gradient.float(), expected_gradient, rtol=0.01, atol=1e-6)


def test_cost_of_a_saturated_wrong_row():
    """Cross-entropy of the row (30, 0, ..., 0) with the label 1, in closed form."""
    logits = torch.zeros(1, 16, dtype=torch.bfloat16)
    logits[:, 0] = 30
    loss, _ = loss_and_gradient(logits, [1], method="softmax")
    assert loss.item() == pytest.approx(math.log(math.exp(30) + 15), rel=0.01)

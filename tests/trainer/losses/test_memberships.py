"""What holds for every method that is no relaxation of sorting: gradients, limits, extreme scores, one graph."""

import pytest
import torch

from headsmith.trainer.loss_defaults import MEMBERSHIP, METHOD_DEFAULTS, OBJECTIVE
from headsmith.trainer.losses import topk_cross_entropy

MEMBERSHIPS = [name for name, method in METHOD_DEFAULTS.items() if method.kind == MEMBERSHIP]
NAMES = [*MEMBERSHIPS, *(name for name, method in METHOD_DEFAULTS.items() if method.kind == OBJECTIVE)]
EQUALLY = [0.2] * 5
MODES = ["sort", "sm", "smce"]


def loss_and_gradient(logits, labels, **options):
    logits = logits.clone().requires_grad_()
    losses = topk_cross_entropy(logits, labels, reduction="none", **options)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    return losses.detach(), gradient


@pytest.mark.parametrize(("top1_mode", "m"), [("sort", None), ("sm", 6), ("smce", 5)])
@pytest.mark.parametrize("method", MEMBERSHIPS)
def test_finite_differences(method, top1_mode, m):
    logits = 2 * torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    options = {"method": method, "p_k": [0.5, 0.2, 0.3], "m": m, "top1_mode": top1_mode, "sinkhorn_tolerance": 0}
    assert torch.autograd.gradcheck(lambda x: topk_cross_entropy(x, torch.tensor([4, 0]), **options), logits)


@pytest.mark.parametrize("top1_mode", MODES)
@pytest.mark.parametrize("method", NAMES)
def test_equal_scores_have_a_moderate_gradient(method, top1_mode):
    losses, gradient = loss_and_gradient(
        torch.zeros(1, 1000), torch.tensor([7]), method=method, p_k=EQUALLY, top1_mode=top1_mode
    )
    assert losses.isfinite().all()
    assert -10 <= gradient[0, 7] < -0.01
    assert gradient.abs().max() <= 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("top1_mode", MODES)
@pytest.mark.parametrize("method", NAMES)
def test_scores_that_lie_ten_thousand_apart(method, top1_mode, dtype):
    logits = (1e4 * torch.randn(6, 30, generator=torch.Generator().manual_seed(0))).clamp(-3e4, 3e4).to(dtype)
    labels = torch.cat([logits[:3].argmax(dim=1), logits[3:].argmin(dim=1)])
    losses, gradient = loss_and_gradient(logits, labels, method=method, p_k=EQUALLY, top1_mode=top1_mode)
    assert losses.isfinite().all()
    assert gradient.isfinite().all()
    assert (losses[:3] < 1e-3).all()
    assert (losses[3:] > 1).all()
    assert losses.dtype == torch.float32


@pytest.mark.parametrize("method", [*MEMBERSHIPS, "sparse_topk"])
def test_among_all_there_are_every_label_is(method):
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    options = {"p_k": [0.0] * 4 + [1.0], "m": 5, "top1_mode": "sort", "method": method}
    losses, gradient = loss_and_gradient(logits, torch.arange(4), **options)
    assert (losses == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("method", MEMBERSHIPS)
def test_one_graph(method):
    """Of the objectives: `test_objectives.py`."""
    logits, labels = torch.randn(6, 11, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, -100, 3, 9, 5])
    options = {"method": method, "m": 6, "p_k": EQUALLY}
    torch.compiler.reset()
    compiled = torch.compile(topk_cross_entropy, fullgraph=True, backend="aot_eager")
    x = logits.clone().requires_grad_()
    losses = compiled(x, labels, reduction="none", **options)
    (gradient,) = torch.autograd.grad(losses.sum(), x)
    torch.testing.assert_close((losses.detach(), gradient), loss_and_gradient(logits, labels, **options))
    torch.compiler.reset()


@pytest.mark.parametrize("method", ["lapsum", "optimal_transport", "sparse_topk"])
def test_no_second_derivative(method):
    logits = torch.randn(2, 9, requires_grad=True)
    loss = topk_cross_entropy(logits, torch.tensor([0, 1]), method=method, top1_mode="sort")
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(loss, logits, create_graph=True)


@pytest.mark.parametrize("method", ["dftopk", "perturbed"])
def test_second_derivatives_where_there_are(method):
    logits = 2 * torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    options = {"method": method, "p_k": [0.5, 0.5], "m": None, "top1_mode": "sort"}
    assert torch.autograd.gradgradcheck(lambda x: topk_cross_entropy(x, torch.tensor([4, 0]), **options), logits)

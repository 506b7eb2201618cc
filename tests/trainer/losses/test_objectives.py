"""Objectives that are no relaxation: what holds for all of them, whatever their formula."""

import pytest
import torch

from headsmith.trainer.loss_defaults import OBJECTIVE, modules_of
from headsmith.trainer.losses import (
    SmoothTopKLoss,
    TopKCrossEntropy,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
    topk_cross_entropy,
)

METHODS = tuple(modules_of(OBJECTIVE))
EQUAL = [0.2] * 5
every_method = pytest.mark.parametrize("method", METHODS)


def batch(rows=6, classes=9, scale=2.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator, dtype=dtype) * scale
    return logits, torch.randint(classes, (rows,), generator=generator)


def step(logits, labels, **options):
    torch.manual_seed(0)
    logits = logits.clone().requires_grad_()
    losses = topk_cross_entropy(logits, labels, reduction="none", **options)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    return losses.detach(), gradient


@every_method
@pytest.mark.parametrize("m", [None, 6])
def test_finite_differences(method, m):
    logits, labels = batch()

    def loss(x):
        torch.manual_seed(0)
        return topk_cross_entropy(x, labels, method=method, p_k=EQUAL, m=m)

    assert torch.autograd.gradcheck(loss, logits.requires_grad_())


@every_method
def test_a_loss_is_the_mean_by_p_k(method):
    logits, labels = batch()
    p_k = torch.tensor([0.1, 0.2, 0.3, 0.4])
    each = torch.stack([step(logits, labels, method=method, p_k=one)[0] for one in torch.eye(4)])
    torch.testing.assert_close(step(logits, labels, method=method, p_k=p_k)[0], (p_k.double() @ each))


@every_method
@pytest.mark.parametrize("m", [16, None])
def test_a_head_of_zeros_has_a_moderate_gradient(method, m):
    """Of `m=None` too, but for the sum-exponential loss, which is not the default."""
    losses, gradient = step(torch.zeros(1, 1000), torch.tensor([3]), method=method, p_k=EQUAL, m=m)
    assert losses.isfinite().all()
    assert gradient.abs().max() <= 10
    assert gradient[0, 3] < 0


@every_method
@pytest.mark.parametrize("scale", [30.0, 1e4, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_huge_scores(method, scale, dtype):
    logits, labels = batch(scale=scale, dtype=torch.float32)
    for values in step(logits.to(dtype), labels, method=method, comp_sum_q=-1.0):
        assert values.isfinite().all()


@every_method
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits_are_those_of_their_rounded_scores(method, dtype):
    logits, labels = batch(dtype=torch.float32)
    losses, gradient = step(logits.to(dtype), labels, method=method)
    expected, slope = step(logits.to(dtype).float(), labels, method=method)
    assert losses.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(gradient.float(), slope, rtol=0.01, atol=1e-6)


@every_method
def test_one_graph(method):
    """With an ignored row, a masked class, and, but for noise that belongs to a candidate's place, ties."""
    logits, labels = batch(dtype=torch.float32)
    logits[2, 0] = -torch.inf
    if "noised" not in method:
        logits[1, 3:5] = 0.5
    labels[0], labels[2] = -100, 1
    torch.compiler.reset()
    compiled = torch.compile(topk_cross_entropy, fullgraph=True, backend="aot_eager")
    torch.manual_seed(0)
    x = logits.clone().requires_grad_()
    losses = compiled(x, labels, method=method, m=7, reduction="none")
    (gradient,) = torch.autograd.grad(losses.sum(), x)
    expected, slope = step(logits, labels, method=method, m=7)
    torch.testing.assert_close(losses.detach(), expected)
    torch.testing.assert_close(gradient, slope, rtol=1e-4, atol=1e-6)


@every_method
@pytest.mark.parametrize("labels", [torch.zeros(4, dtype=torch.int64), torch.zeros(4, 2, dtype=torch.int64)])
def test_no_value_is_asked_for(method, labels):
    """Tensors on meta have none, as a graph that is captured has none yet."""
    logits = torch.zeros(4, 30, device="meta", requires_grad=True)
    topk_cross_entropy(logits, labels.to("meta"), method=method).backward()
    assert logits.grad.shape == (4, 30)


@every_method
@pytest.mark.parametrize(("classes", "m"), [(5, 5), (9, 5), (1, 1), (2, None)])
def test_as_many_ranks_as_candidates(method, classes, m):
    logits, labels = batch(classes=classes)
    ranks = min(classes, 5)
    for values in step(logits, labels, method=method, m=m, p_k=[0.0] * (ranks - 1) + [1.0]):
        assert values.isfinite().all()


@pytest.mark.parametrize(
    ("method", "options", "other"),
    [
        ("smooth_topk", {"inverse_temperature": 2.0}, lambda k: SmoothTopKLoss(k, tau=0.5)),
        ("topk_hinge", {}, TopKHingeLoss),
        ("topk_hinge", {"hinge": "beta"}, lambda k: TopKHingeLoss(k, "beta")),
        ("topk_entropy", {}, TopKEntropyLoss),
        ("truncated_topk_entropy", {}, TruncatedTopKEntropyLoss),
    ],
)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("soft", [False, True])
def test_methods_are_the_losses_for_one_k(method, options, other, k, soft):
    logits, labels = batch()
    labels = logits.flip(0).softmax(1) if soft else labels
    p_k = [0.0] * (k - 1) + [1.0]
    loss = TopKCrossEntropy(p_k, method, m=None, **options)
    torch.testing.assert_close(loss(logits, labels), other(k)(logits, labels))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "smooth_topk", "inverse_temperature": 0.0}, "inverse_temperature: 0.0 found, expected a finite"),
        ({"method": "topk_hinge", "hinge": "alfa"}, "hinge: 'alfa' found, .*; did you mean alpha?"),
        ({"method": "comp_sum", "comp_sum_q": 1.5}, r"comp_sum_q: 1.5 found, expected a number in \[-1, 1\]"),
        ({"method": "comp_sum", "comp_sum_q": float("nan")}, "comp_sum_q: nan found"),
        ({"method": "comp_sum", "comp_sum_q": True}, "comp_sum_q: True found"),
        ({"method": "topk_entropy", "p_k": EQUAL, "m": 4}, "p_k: 5 entries found, but m is 4"),
        ({"method": "topk_entropy", "p_k": [1 / 12] * 12}, "p_k: 12 entries found for 9 classes"),
        ({"method": "topk_entropy", "impl": "triton"}, "impl: 'triton' found, but method 'topk_entropy' has no kernel"),
        ({"method": "smooth_top"}, "method: 'smooth_top' found, .*; did you mean smooth_topk"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(ValueError, match=said) as found:
        topk_cross_entropy(*batch(), **options)
    assert "\n" not in str(found.value)

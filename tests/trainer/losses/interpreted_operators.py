"""More of the kernels against plain torch, run by `test_kernels.py` under Triton's interpreter."""

import pytest
import torch

from headsmith.trainer.loss_defaults import FUSED
from headsmith.trainer.losses import (
    TopKCrossEntropy,
    implementation,
    linear_topk_cross_entropy,
    topk_cross_entropy,
)

P_K = (0.4, 0.0, 0.35, 0.25)


def batch(shape, dtype=torch.float32):
    """Distinct scores, a wrong and a confident row."""
    generator = torch.Generator().manual_seed(0)
    rows, classes = shape
    logits = torch.stack([torch.randperm(classes, generator=generator) for _ in range(rows)]) / classes * 8 - 4
    labels = torch.randint(classes, (rows,), generator=generator)
    logits[0, labels[0]] = 9
    return logits.to(dtype), labels


def step(logits, labels, impl, **options):
    logits = logits.detach().clone().requires_grad_()
    loss = topk_cross_entropy(logits, labels, impl=impl, **options)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return loss.detach(), gradient


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("classes", [16, 61, 5000])
def test_types_and_widths(dtype, classes):
    """Rows that vector loads fit, rows that they do not, and rows of several tiles; equal scores in 16 bits."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(2, classes, generator=generator).mul(20).round().to(dtype)
    labels = torch.tensor([3, classes - 1])
    loss, gradient = step(logits, labels, "triton", m=8)
    expected_loss, expected = step(logits, labels, "torch", m=8)
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(gradient.float().sort().values, expected.float().sort().values, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize("method", FUSED)
def test_equal_scores(method):
    logits = torch.zeros(1, 20)
    loss, gradient = step(logits, torch.tensor([3]), "triton", method=method, m=6)
    expected_loss, expected = step(logits, torch.tensor([3]), "torch", method=method, m=6)
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(gradient.sort().values, expected.sort().values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_nan_of_either_sign(dtype, sign):
    logits, labels = batch((3, 13), dtype)
    logits[1, 4] = torch.tensor(float("nan"), dtype=dtype).copysign(torch.tensor(sign, dtype=dtype))
    loss, _ = step(logits, labels, "triton", reduction="none", m=5)
    assert loss.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("options", [{}, {"weight": torch.linspace(1, 2, 13), "softmax_over": "classes"}])
def test_traced_as_one_graph(options):
    logits, labels = batch((3, 13))
    logits.requires_grad_()
    loss_of = TopKCrossEntropy(P_K, m=6, impl="triton", **options)
    torch.compiler.reset()
    loss = torch.compile(loss_of, fullgraph=True, backend="aot_eager")(logits, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    expected_loss, expected = step(logits, labels, "torch", p_k=P_K, m=6, **options)
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_the_same_bits_each_time():
    logits, labels = batch((3, 40))
    first, second = (step(logits, labels, "triton", method="sinkhorn")[1] for _ in range(2))
    assert torch.equal(first, second)


def test_choice_of_the_implementation():
    logits, labels = batch((2, 13))
    assert implementation("torch", logits) == "torch"
    assert implementation("auto", torch.zeros(2, 13)) == "torch"
    assert implementation("triton", logits) == "triton"
    for method in FUSED:
        with pytest.raises(
            ValueError, match=r"impl: 'triton' found, but logits are torch.float64.*expected impl='torch'"
        ):
            topk_cross_entropy(logits.double(), labels, impl="triton", method=method)
    with pytest.raises(ValueError, match="there are 200 candidates, and the kernels keep at most 128"):
        topk_cross_entropy(torch.zeros(2, 200), labels, m=None, impl="triton")


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_linear_head(reduction):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((7, 4), (13, 4), (13,))]
    labels = torch.randint(13, (7,), generator=generator)
    ours, expected = (
        linear_topk_cross_entropy(*inputs, labels, reduction=reduction, chunk_rows=3, m=6, impl=impl).sum()
        for impl in ("triton", "torch")
    )
    torch.testing.assert_close(ours, expected)
    for ours_by, expected_by in zip(
        torch.autograd.grad(ours, inputs), torch.autograd.grad(expected, inputs), strict=True
    ):
        torch.testing.assert_close(ours_by, expected_by, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("softmax_over", ["candidates", "classes"])
def test_in_a_loop_of_batches_of_all_kinds(softmax_over):
    """Shapes, types and upstream gradients in turn, each batch more than once."""
    loss_of = TopKCrossEntropy(P_K, m=6, impl="triton", softmax_over=softmax_over)
    for shape, dtype in [((3, 13), torch.float32), ((5, 16), torch.float32), ((3, 13), torch.bfloat16)] * 2:
        logits, labels = batch(shape, dtype)
        expected_loss, expected = step(logits, labels, "torch", p_k=P_K, m=6, softmax_over=softmax_over)
        logits.requires_grad_()
        loss = loss_of(logits, labels)
        torch.testing.assert_close(loss.detach(), expected_loss)
        (loss * 3).backward(retain_graph=True)
        torch.testing.assert_close(logits.grad, 3 * expected, rtol=1e-2, atol=1e-5)
        (loss + loss_of(logits, labels)).backward()
        torch.testing.assert_close(logits.grad, 5 * expected, rtol=3e-2, atol=1e-5)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()


def test_targets_of_any_strides():
    logits, labels = batch((4, 13))
    shares = torch.tensor(P_K)
    ways = {
        "labels": {"p_k": P_K},
        "p_k": {"p_k": shares.repeat_interleave(2)[::2]},
        "sample_p_k": {"sample_p_k": shares.expand(4, 4)},
        "weight": {"p_k": P_K, "weight": torch.linspace(1, 2, 26)[::2]},
    }
    for options in ways.values():
        strided = torch.stack([labels, labels.flip(0)], dim=1)[:, 0]
        ours, expected = (step(logits, strided, impl, m=6, **options) for impl in ("triton", "torch"))
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)

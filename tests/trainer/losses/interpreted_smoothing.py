"""Labels smoothed within the kernels against plain torch, run by `test_kernels.py` under Triton's interpreter."""

import pytest
import torch
from interpreted_kernels import assert_same, batch, one_row, p_k_of, with_gradient

from headsmith.trainer.loss_defaults import FUSED, NETWORKS
from headsmith.trainer.losses import TopKCrossEntropy, linear_topk_cross_entropy
from headsmith.trainer.losses.kernels import fused_loss, run_kernels, run_lapsum_of_all

OF_ALL = {"method": "lapsum", "m": None, "p_k": [0.5, 0.5]}
WAYS = [("sm", "candidates"), ("sm", "classes"), ("smce", "candidates"), ("smce", "classes"), ("sort", "candidates")]


@pytest.mark.parametrize("method", FUSED)
@pytest.mark.parametrize(("top1_mode", "softmax_over"), WAYS)
def test_every_method(method, top1_mode, softmax_over):
    options = {"method": method, "top1_mode": top1_mode, "softmax_over": softmax_over, "sinkhorn_iterations": 3}
    assert_same(*one_row(2, 37), p_k=p_k_of(options), m=5, label_smoothing=0.1, **options)


@pytest.mark.parametrize(("top1_mode", "softmax_over"), WAYS)
@pytest.mark.parametrize("widest", [64, 8192])
def test_lapsum_of_all_classes(monkeypatch, top1_mode, softmax_over, widest):
    monkeypatch.setattr(run_lapsum_of_all, "WIDEST", widest)
    monkeypatch.setattr(run_lapsum_of_all, "GRADIENTS", widest)
    logits, labels = batch(3, 150)
    labels[1], logits[1, 3] = -100, torch.nan
    options = OF_ALL | {"top1_mode": top1_mode, "softmax_over": softmax_over}
    assert_same(logits, labels, label_smoothing=0.3, **options)
    logits[0, :140] = -torch.inf
    labels[0] = 145
    assert_same(logits, labels, label_smoothing=0.3, **options)


@pytest.mark.parametrize("smoothing", [1e-3, 0.5, 1])
@pytest.mark.parametrize("options", [{}, {"method": "softmax", "p_k": [1.0]}, OF_ALL], ids=["few", "softmax", "all"])
def test_amounts(smoothing, options):
    assert_same(*batch(2, 150), label_smoothing=smoothing, **({"p_k": [0.5, 0.5]} | options))


@pytest.mark.parametrize("classes", [16, 61, 5003])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_types_and_widths(classes, dtype):
    generator = torch.Generator().manual_seed(classes)
    logits = (torch.randn(2, classes, generator=generator) * 2 + 100).to(dtype)
    labels = torch.tensor([3, classes - 1])
    options = {"method": "softmax", "label_smoothing": 0.2}
    assert_same(logits, labels, **options)
    assert_same(logits[:, : classes - 1], labels.clamp_max(classes - 2), **options)


@pytest.mark.parametrize(
    ("options", "reduction"),
    [
        ({}, "none"),
        ({}, "sum"),
        ({}, "mean"),
        ({"softmax_over": "classes"}, "none"),
        (OF_ALL, "none"),
        (OF_ALL, "mean"),
    ],
    ids=["few-none", "few-sum", "few-mean", "over classes-none", "all-none", "all-mean"],
)
def test_masked_ignored_and_nan(options, reduction):
    """A masked class makes the loss infinite, as in plain torch, and leaves the gradient finite."""
    logits, labels = batch(5, 150)
    options = {"p_k": [0.5, 0.5], "m": 6, "reduction": reduction, "label_smoothing": 0.1} | options
    labels[0], logits[0, 7] = -100, torch.nan
    assert_same(logits, labels, **options)
    logits[1, logits[1].argsort()[:-3]] = -torch.inf
    labels[1] = logits[1].argmax()
    labels[3], logits[3, 5] = 5, -torch.inf
    assert_same(logits, labels, **options)
    logits[2, 9] = torch.nan
    loss, gradient = with_gradient(logits, labels, "triton", **(options | {"reduction": "none"}))
    assert loss.isnan().tolist() == [False, False, True, False, False]
    assert loss.isinf().tolist() == [False, True, False, True, False]
    assert gradient.isnan().any(dim=1).tolist() == [False, False, True, False, False]
    for rows in (3, 0):
        assert_same(logits[:rows], torch.full((rows,), -100), **options)


@pytest.mark.parametrize("method", NETWORKS)
def test_two_rows_a_program(monkeypatch, method):
    monkeypatch.setattr(run_kernels, "PAIRED_ROWS", 1)
    logits, labels = batch(5, 37, torch.bfloat16)
    labels[1] = -100
    assert_same(logits, labels, p_k=[0.5, 0.5], m=6, method=method, reduction="none", label_smoothing=0.1)


@pytest.mark.parametrize("options", [{"m": 6}, OF_ALL], ids=["few", "all"])
def test_in_place_and_traced(options):
    logits, labels = batch(3, 150)
    options = {"p_k": [0.5, 0.5], "label_smoothing": 0.1} | options
    expected = with_gradient(logits, labels, "triton", **options)
    ours = with_gradient(logits.clone(), labels, "triton", inplace=True, **options)
    torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    traced = torch.compile(TopKCrossEntropy(impl="triton", **options), fullgraph=True, backend="aot_eager")
    x = logits.clone().requires_grad_()
    loss = traced(x, labels)
    torch.testing.assert_close((loss.detach(), *torch.autograd.grad(loss, x)), expected)
    assert traced(logits, labels + 150).isnan()


def test_linear_head():
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((7, 4), (13, 4), (13,))]
    labels = torch.randint(13, (7,), generator=generator)
    results = []
    for impl in ("triton", "torch"):
        loss = linear_topk_cross_entropy(*inputs, labels, chunk_rows=3, m=6, label_smoothing=0.1, impl=impl)
        results.append((loss.detach(), *torch.autograd.grad(loss, inputs)))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_where_kernels_smooth(monkeypatch):
    """One label a row without class weights; other forms smooth in torch, over the kernels' losses."""
    seen = []
    forward = run_kernels.forward
    monkeypatch.setattr(
        fused_loss.run_kernels, "forward", lambda *given: (seen.append(given[2].label_smoothing), forward(*given))[1]
    )
    logits, labels = batch(2, 37)
    for labels_of, weight, smoothed in [
        (labels.int(), None, 0.1),
        (labels, torch.ones(37), 0.0),
        (labels[:, None], None, 0.0),
    ]:
        seen.clear()
        assert_same(logits, labels_of, weight=weight, p_k=[0.5, 0.5], m=6, label_smoothing=0.1)
        assert seen == [smoothed]

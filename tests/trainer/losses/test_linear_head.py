"""The linear head and its loss in one, against the two steps apart."""

from itertools import combinations

import pytest
import torch
from torch.nn.functional import linear

from headsmith.trainer.losses import METHODS, linear_topk_cross_entropy, topk_cross_entropy

ROWS, WIDTH, CLASSES = 50, 6, 9
NAMES = ("features", "weight", "bias")


def inputs(dtype=torch.float64) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"features": (ROWS, WIDTH), "weight": (CLASSES, WIDTH), "bias": (CLASSES,)}
    return {name: torch.randn(shape, generator=generator, dtype=dtype) for name, shape in shapes.items()}


def labels() -> torch.Tensor:
    values = torch.arange(ROWS) % CLASSES
    values[::7] = -100
    return values


def together(features, weight, bias, labels, **options):
    return linear_topk_cross_entropy(features, weight, bias, labels, **options)


def apart(features, weight, bias, labels, *, class_weight=None, chunk_rows=None, **options):
    return topk_cross_entropy(linear(features, weight, bias), labels, weight=class_weight, **options)


def value_and_gradients(loss, tensors, wanted, labels, **options):
    tensors = {name: x if x is None else x.clone().requires_grad_(name in wanted) for name, x in tensors.items()}
    value = loss(*(tensors[name] for name in NAMES), labels, **options)
    if wanted:
        (value * torch.linspace(1, 2, value.numel(), dtype=value.dtype).reshape(value.shape)).sum().backward()
    return value.detach(), {name: x if x is None else x.grad for name, x in tensors.items()}


def assert_same(tensors, wanted, labels, rtol=1e-6, **options):
    value, grads = value_and_gradients(together, tensors, wanted, labels, **options)
    expected, expected_grads = value_and_gradients(apart, tensors, wanted, labels, **options)
    torch.testing.assert_close(value, expected, rtol=rtol, atol=rtol)
    for name in NAMES:
        if name in wanted:
            torch.testing.assert_close(grads[name], expected_grads[name], rtol=rtol, atol=rtol)
        else:
            assert grads[name] is None


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("method", [method for method in METHODS if method != "average_topk"])
def test_value_and_gradients(method, reduction):
    assert_same(inputs(), NAMES, labels(), method=method, reduction=reduction)


def test_a_loss_that_chooses_among_all_rows_is_refused():
    with pytest.raises(ValueError, match="method: 'average_topk' found, which chooses among all rows of a batch"):
        together(*inputs().values(), labels(), method="average_topk")


def test_class_counts():
    counts = torch.arange(1, CLASSES + 1)
    assert_same(inputs(), NAMES, labels(), method="imbalanced_noised_topk", class_counts=counts)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("wanted", [names for count in range(3) for names in combinations(NAMES, count)])
def test_each_gradient_alone(wanted, reduction):
    assert_same(inputs(), wanted, labels(), reduction=reduction)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_without_bias(reduction):
    assert_same(inputs() | {"bias": None}, ("features", "weight"), labels(), reduction=reduction)


@pytest.mark.parametrize("chunk_rows", [1, 7, 49, 50, 1000])
def test_chunks_do_not_matter(chunk_rows):
    assert_same(inputs(), NAMES, labels(), chunk_rows=chunk_rows)


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": torch.linspace(1, 2, CLASSES, dtype=torch.float64)},
        {"label_smoothing": 0.1},
        {"ignore_index": 3},
        {"p_k": [1.0], "top1_mode": "smce", "softmax_over": "classes"},
        {"p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]] * 3},
        {"sample_p_k": [[0.5, 0.5], [1.0, 0.0]] * 25},
    ],
)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_options(options, reduction):
    values = labels() if "ignore_index" not in options else torch.arange(ROWS) % CLASSES
    assert_same(inputs(), NAMES, values, reduction=reduction, chunk_rows=16, **options)


def test_multi_label_and_soft_targets():
    multi = torch.stack([labels(), torch.arange(ROWS) % 5], dim=1)
    soft = torch.rand(ROWS, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    for targets in (multi, soft):
        assert_same(inputs(), NAMES, targets, chunk_rows=16)


def test_all_ignored_and_empty():
    ignored = torch.full((ROWS,), -100)
    value, grads = value_and_gradients(together, inputs(), NAMES, ignored)
    assert value == 0
    assert all((gradient == 0).all() for gradient in grads.values())
    empty = inputs() | {"features": torch.zeros(0, WIDTH, dtype=torch.float64)}
    for reduction in ("mean", "sum", "none"):
        value, grads = value_and_gradients(together, empty, NAMES, ignored[:0], reduction=reduction)
        assert value.sum() == 0
        assert all((gradient == 0).all() for gradient in grads.values())


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_autocast(reduction):
    tensors = inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, grads = value_and_gradients(together, tensors, NAMES, labels(), reduction=reduction)
        expected, expected_grads = value_and_gradients(apart, tensors, NAMES, labels(), reduction=reduction)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)
    for name in NAMES:
        assert grads[name].dtype == torch.float32
        torch.testing.assert_close(grads[name], expected_grads[name], rtol=0.05, atol=0.02)


def test_second_backward_is_refused():
    features = inputs()["features"].requires_grad_()
    loss = together(features, *list(inputs().values())[1:], labels())
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        loss.backward()

"""Labels, weights and reductions mean what they mean in PyTorch."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from headsmith.trainer.losses import METHODS, TopKCrossEntropy, topk_cross_entropy

LOGITS = 2 * torch.randn(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 8, 7, 3, 3])
WEIGHT = torch.linspace(0.5, 2, 9, dtype=torch.float64)
OPTIONS = {"p_k": [0.5, 0.2, 0.3], "m": 5, "method": "bitonic", "distribution": "logistic"}
REDUCTIONS = ["none", "sum", "mean"]
every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


def rows(logits=LOGITS, labels=LABELS, **options):
    return topk_cross_entropy(logits, labels, reduction="none", **(OPTIONS | options))


def with_gradient(loss, logits=LOGITS):
    logits = logits.clone().requires_grad_()
    value = loss(logits)
    value.sum().backward()
    return value.detach(), logits.grad


def assert_same(ours, expected):
    for a, b in zip(with_gradient(ours), with_gradient(expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


@every_reduction
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("ignore_index", [-100, 3, 0, 255])
def test_softmax_is_torch_s_cross_entropy(reduction, weight, ignore_index):
    labels = LABELS.clone()
    labels[2] = ignore_index
    options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    assert_same(
        lambda x: topk_cross_entropy(x, labels, method="softmax", **options),
        lambda x: cross_entropy(x, labels, **options),
    )


def test_ignored_row_is_as_if_absent():
    labels = torch.tensor([0, 1, -100, 7, 3, 3])
    kept = labels != -100
    for reduction in ("sum", "mean"):
        assert_same(
            lambda x, how=reduction: topk_cross_entropy(x, labels, reduction=how, **OPTIONS),
            lambda x, how=reduction: topk_cross_entropy(x[kept], labels[kept], reduction=how, **OPTIONS),
        )
    torch.testing.assert_close(rows(labels=labels), rows() * kept)


@pytest.mark.parametrize("method", METHODS)
@every_reduction
def test_all_ignored(method, reduction):
    labels = torch.full((6,), -100)
    loss, gradient = with_gradient(lambda x: topk_cross_entropy(x, labels, method=method, reduction=reduction))
    assert (loss == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("method", METHODS)
@every_reduction
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_empty_batch(method, reduction, shape, label_smoothing):
    logits = torch.zeros(0, 9, requires_grad=True)
    labels = torch.zeros(shape, dtype=torch.int64)
    loss = topk_cross_entropy(logits, labels, method=method, reduction=reduction, label_smoothing=label_smoothing)
    assert loss.shape == ((0,) if reduction == "none" else ())
    assert (loss == 0).all()
    loss.sum().backward()
    assert logits.grad.shape == (0, 9)


def test_class_weight_by_torch_s_rule():
    """Uniform logits of two classes, weights 1 and 3: each row costs ln 2 times its weight; mean divides by 4."""
    options = {"method": "softmax", "weight": torch.tensor([1.0, 3.0])}
    logits, labels = torch.zeros(2, 2), torch.tensor([0, 1])
    values = {how: topk_cross_entropy(logits, labels, reduction=how, **options).tolist() for how in REDUCTIONS}
    assert values["none"] == pytest.approx([math.log(2), 3 * math.log(2)])
    assert values["sum"] == pytest.approx(4 * math.log(2))
    assert values["mean"] == pytest.approx(math.log(2))


def test_class_weight_of_a_relaxation():
    weights = WEIGHT[LABELS]
    torch.testing.assert_close(rows(weight=WEIGHT), rows() * weights)
    mean = topk_cross_entropy(LOGITS, LABELS, weight=WEIGHT, **OPTIONS)
    torch.testing.assert_close(mean, (rows() * weights).sum() / weights.sum())


def test_micro_batches_add_up():
    parts = [topk_cross_entropy(LOGITS[i : i + 2], LABELS[i : i + 2], reduction="sum", **OPTIONS) for i in (0, 2, 4)]
    torch.testing.assert_close(sum(parts) / 6, topk_cross_entropy(LOGITS, LABELS, **OPTIONS))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_label_types(dtype):
    torch.testing.assert_close(rows(labels=LABELS.to(dtype)), rows(), rtol=0, atol=0)


def test_multi_label_is_the_mean_over_its_labels():
    labels = torch.tensor([[0, 1, 2], [1, -100, -100], [8, 4, -100], [7, 6, 5], [-100, -100, -100], [3, 0, 8]])
    count = (labels != -100).sum(dim=1)

    def expected(logits):
        return sum(rows(logits, column) for column in labels.unbind(dim=1)) / count.clamp_min(1)

    assert_same(lambda x: rows(x, labels), expected)
    mean = topk_cross_entropy(LOGITS, labels, **OPTIONS)
    torch.testing.assert_close(mean, expected(LOGITS).sum() / 5)


def test_multi_label_with_class_weights():
    labels = torch.tensor([[0, 1], [1, -100], [8, 4], [7, 6], [2, -100], [3, 0]])
    kept = labels != -100
    shares = WEIGHT[labels.clamp_min(0)] * kept / kept.sum(dim=1, keepdim=True)
    losses = torch.stack([rows(labels=column) for column in labels.unbind(dim=1)], dim=1)
    torch.testing.assert_close(rows(labels=labels, weight=WEIGHT), (shares * losses).sum(dim=1))


def test_one_hot_targets_are_hard_labels():
    one_hot = torch.nn.functional.one_hot(LABELS, 9).double()
    assert_same(lambda x: rows(x, one_hot), rows)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_mixed_targets_mix_the_losses(share):
    other = LABELS.flip(0)
    one_hot = torch.nn.functional.one_hot
    mixed = share * one_hot(LABELS, 9).double() + (1 - share) * one_hot(other, 9).double()
    assert_same(lambda x: rows(x, mixed), lambda x: share * rows(x) + (1 - share) * rows(x, other))


@every_reduction
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_soft_targets_of_softmax_are_torch_s(reduction, weight):
    targets = torch.rand(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    options = {"weight": weight, "reduction": reduction}
    assert_same(
        lambda x: topk_cross_entropy(x, targets, method="softmax", **options),
        lambda x: cross_entropy(x, targets, **options),
    )


@every_reduction
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT * (torch.arange(9) != 8)])
@pytest.mark.parametrize("soft", [False, True])
def test_smoothing_of_softmax_is_torch_s(reduction, label_smoothing, weight, soft):
    """One class has no weight, but a label of it still costs the share of the others."""
    labels = LABELS.clone()
    labels[1] = -100
    if soft:
        labels = torch.rand(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    options = {"label_smoothing": label_smoothing, "reduction": reduction, "weight": weight}
    assert_same(
        lambda x: topk_cross_entropy(x, labels, method="softmax", **options),
        lambda x: cross_entropy(x, labels, **options),
    )


def test_soft_targets_have_no_index_to_ignore():
    one_hot = torch.nn.functional.one_hot(LABELS, 9).double()
    assert_same(lambda x: rows(x, one_hot, ignore_index=3), rows)


def test_smoothing_leaves_out_ignored_rows_of_nan():
    logits = LOGITS.index_fill(0, torch.tensor([1]), torch.nan)
    labels = LABELS.index_fill(0, torch.tensor([1]), -100)
    value, gradient = with_gradient(lambda x: topk_cross_entropy(x, labels, label_smoothing=0.1, **OPTIONS), logits)
    torch.testing.assert_close(value, topk_cross_entropy(LOGITS, labels, label_smoothing=0.1, **OPTIONS))
    assert gradient.isfinite().all()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_smoothing_of_a_relaxation(label_smoothing):
    uniform = torch.full((6, 9), 1 / 9, dtype=torch.float64)
    assert_same(
        lambda x: rows(x, label_smoothing=label_smoothing),
        lambda x: (1 - label_smoothing) * rows(x) + label_smoothing * cross_entropy(x, uniform, reduction="none"),
    )


def test_smoothing_of_uniform_logits_changes_nothing():
    loss = topk_cross_entropy(torch.zeros(1, 4), torch.tensor([2]), method="softmax", label_smoothing=0.1)
    assert loss.item() == pytest.approx(math.log(4))


@pytest.mark.parametrize("top1_mode", ["sort", "sm", "smce"])
def test_p_k_per_class_and_per_sample(top1_mode):
    choices = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1.0]], dtype=torch.float64)
    by_class = choices[torch.arange(9) % 3]
    alone = [
        topk_cross_entropy(
            LOGITS[i : i + 1],
            LABELS[i : i + 1],
            **(OPTIONS | {"p_k": by_class[LABELS[i]].tolist()}),
            top1_mode=top1_mode,
        )
        for i in range(6)
    ]
    torch.testing.assert_close(rows(p_k=by_class, top1_mode=top1_mode), torch.stack(alone))
    torch.testing.assert_close(rows(sample_p_k=by_class[LABELS], top1_mode=top1_mode), torch.stack(alone))
    module = TopKCrossEntropy(**OPTIONS, top1_mode=top1_mode, reduction="none")
    torch.testing.assert_close(module(LOGITS, LABELS, sample_p_k=by_class[LABELS]), torch.stack(alone))


def test_p_k_per_class_of_a_multi_label_row():
    choices = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1.0]], dtype=torch.float64)
    by_class = choices[torch.arange(9) % 3]
    labels = torch.stack([LABELS, (LABELS + 1) % 9], dim=1)
    expected = (rows(p_k=by_class) + rows(labels=labels[:, 1], p_k=by_class)) / 2
    torch.testing.assert_close(rows(labels=labels, p_k=by_class), expected)


def test_default_p_k_and_m():
    """Half top-1 and half top-5 over 16 candidates; of fewer classes over all of them."""
    torch.testing.assert_close(
        topk_cross_entropy(LOGITS, LABELS), topk_cross_entropy(LOGITS, LABELS, p_k=[0.5, 0, 0, 0, 0.5], m=None)
    )
    torch.testing.assert_close(topk_cross_entropy(LOGITS, LABELS, method="softmax"), cross_entropy(LOGITS, LABELS))

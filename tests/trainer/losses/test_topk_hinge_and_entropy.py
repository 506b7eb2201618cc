"""Top-k hinge and the two top-k entropies: against their definitions, numerical conjugates, and cross-entropy."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize_scalar
from torch.nn.functional import cross_entropy, multi_margin_loss

from headsmith.trainer.losses import SmoothTopKLoss, TopKEntropyLoss, TopKHingeLoss, TruncatedTopKEntropyLoss

LOSSES = [TopKHingeLoss, TopKEntropyLoss, TruncatedTopKEntropyLoss, SmoothTopKLoss]


def batch(rows=6, classes=8, scale=2.0):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * scale
    return logits, torch.randint(classes, (rows,), generator=generator)


def conjugate(gaps, k):
    """max <a, x> + H(x) + H(1 - <1, x>) over the top-k simplex: over x by its multiplier, then over <1, x>."""

    def negative(total):
        def excess(t):
            return np.minimum(np.exp(gaps - t), total / k).sum() - total

        x = np.minimum(np.exp(gaps - brentq(excess, -50, 50, xtol=1e-13)), total / k)
        return (x * np.log(x)).sum() + (1 - total) * np.log(1 - total) - gaps @ x

    return -minimize_scalar(negative, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}).fun


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_top_k_entropy_is_the_conjugate(k):
    logits, labels = batch()
    losses = TopKEntropyLoss(k, reduction="none")(logits, labels)
    for row, label, loss in zip(logits.numpy(), labels.tolist(), losses.tolist(), strict=True):
        assert loss == pytest.approx(conjugate(np.delete(row - row[label], label), k), abs=1e-7)


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_truncated_top_k_entropy_by_its_definition(k):
    logits, labels = batch()
    losses = TruncatedTopKEntropyLoss(k, reduction="none")(logits, labels)
    for row, label, loss in zip(logits.numpy(), labels.tolist(), losses.tolist(), strict=True):
        smallest = np.sort(np.delete(row - row[label], label))[: len(row) - k]
        assert loss == pytest.approx(np.log1p(np.exp(smallest).sum()))


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_hinge_by_its_definition(k, variant):
    logits, labels = batch()
    losses = TopKHingeLoss(k, variant, reduction="none")(logits, labels)
    for row, label, loss in zip(logits.numpy(), labels.tolist(), losses.tolist(), strict=True):
        top = np.sort(row - row[label] + (np.arange(len(row)) != label))[-k:]
        expected = max(0, top.mean()) if variant == "alpha" else np.maximum(top, 0).mean()
        assert loss == pytest.approx(expected)


def test_beta_hinge_of_all_classes_is_the_multi_class_margin_loss():
    logits, labels = batch()
    torch.testing.assert_close(TopKHingeLoss(8, "beta")(logits, labels), multi_margin_loss(logits, labels))


@pytest.mark.parametrize("loss", [TopKEntropyLoss, TruncatedTopKEntropyLoss])
def test_k_1_is_cross_entropy(loss):
    logits, labels = batch(33, 252)
    torch.testing.assert_close(loss(1)(logits, labels), cross_entropy(logits, labels))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [1, 3, 7, 8])
def test_finite_differences(loss, k):
    logits, labels = batch()
    assert torch.autograd.gradcheck(lambda x: loss(k)(x, labels), logits.requires_grad_())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_right_answer_costs_nothing_and_ties_are_finite(loss):
    logits = torch.zeros(2, 8, requires_grad=True)
    confident = torch.zeros(2, 8)
    confident[:, 3] = 50
    assert loss(3)(confident, torch.tensor([3, 3])) < 1e-4
    value = loss(3)(logits, torch.tensor([3, 4]))
    value.backward()
    assert value.isfinite()
    assert logits.grad.abs().max() <= 1


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_ignored_rows_and_several_labels(loss):
    logits, labels = batch()
    weight = torch.rand(8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    each = loss(3, reduction="none")(logits, labels)
    expected = (each * weight[labels]).sum() / weight[labels].sum()
    torch.testing.assert_close(loss(3, weight=weight)(logits, labels), expected)
    ignored = labels.clone()
    ignored[2] = -100
    kept = torch.arange(6) != 2
    torch.testing.assert_close(loss(3)(logits, ignored), each[kept].mean())
    assert loss(3)(logits, torch.full((6,), -100)) == 0
    pairs = torch.stack([labels, labels.roll(1)], dim=1)
    other = loss(3, reduction="none")(logits, labels.roll(1))
    torch.testing.assert_close(loss(3, reduction="none")(logits, pairs), (each + other) / 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_bad_input(loss):
    logits, labels = batch()
    with pytest.raises(ValueError, match="k: 0 found, expected a whole number in 1..C"):
        loss(0)
    with pytest.raises(ValueError, match="k: 9 found for 8 classes, expected 1..8"):
        loss(9)(logits, labels)
    with pytest.raises(IndexError, match="label 8 in row 0"):
        loss(3)(logits, labels * 0 + 8)
    with pytest.raises(TypeError, match="labels are torch.float64"):
        loss(3)(logits, labels.double())
    logits[1, 2] = torch.nan
    assert loss(3, reduction="none")(logits, labels).isnan().tolist() == [False, True, False, False, False, False]

"""The smooth top-k SVM against the sum over all k-sets, difftopk's, and cross-entropy."""

from itertools import combinations

import pytest
import torch
from difftopk import smooth_topk as peer
from torch.nn.functional import cross_entropy

from headsmith.trainer.losses import SmoothTopKLoss


def batch(shape, dtype=torch.float64, scale=2.0):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator, dtype=dtype) * scale
    return logits, torch.randint(shape[1], shape[:1], generator=generator)


def sum_over_sets(scores, label, k, tau, margin):
    sets = [(scores[list(chosen)].sum() / k, label in chosen) for chosen in combinations(range(len(scores)), k)]
    every = torch.stack([(total + margin * (not has)) / tau for total, has in sets])
    right = torch.stack([total / tau for total, has in sets if has])
    return tau * (every.logsumexp(0) - right.logsumexp(0))


@pytest.mark.parametrize("k", [1, 2, 3, 6, 7])
@pytest.mark.parametrize(("tau", "margin"), [(0.7, 1.0), (1.0, 0.0), (0.1, 0.5)])
def test_closed_form(k, tau, margin):
    logits, labels = batch((6, 7))
    losses = SmoothTopKLoss(k, tau, margin, reduction="none")(logits, labels)
    expected = [sum_over_sets(row, label, k, tau, margin) for row, label in zip(logits, labels.tolist(), strict=True)]
    torch.testing.assert_close(losses, torch.stack(expected))


@pytest.mark.filterwarnings("ignore:<class 'difftopk:DeprecationWarning")
@pytest.mark.parametrize("tau", [0.1, 1.0])
@pytest.mark.parametrize(("shape", "k"), [((7, 13), 2), ((33, 252), 5)])
def test_value_and_gradient_of_the_peer(shape, k, tau):
    logits, labels = batch(shape, torch.float32)
    for mode, other in (("smooth", peer.SmoothTopKLoss), ("mixed", peer.SmoothHardTopKLoss)):
        ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        loss = SmoothTopKLoss(k, tau, mode=mode)(ours, labels)
        expected = other(shape[1], k, tau)(theirs * 1, labels)
        torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
        if tau == 1:  # for lower ones the peer approximates its gradient
            loss.backward()
            expected.backward()
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 6])
def test_hard_is_the_cold_limit_and_the_peer(k):
    logits, labels = batch((33, 7))
    hard = SmoothTopKLoss(k, mode="hard", reduction="none")(logits, labels)
    torch.testing.assert_close(SmoothTopKLoss(k, 1e-5, reduction="none")(logits, labels), hard, atol=1e-3, rtol=0)
    expected = peer.Topk_Hard_SVM(torch.arange(7), k)(logits, labels)
    torch.testing.assert_close(hard, expected)


def test_margin_0_and_k_1_is_cross_entropy():
    logits, labels = batch((33, 252))
    torch.testing.assert_close(SmoothTopKLoss(1, 1.0, 0.0)(logits, labels), cross_entropy(logits, labels))


@pytest.mark.parametrize("mode", ["smooth", "hard", "mixed"])
def test_all_classes_cost_nothing(mode):
    logits, labels = batch((3, 4))
    logits.requires_grad_()
    loss = SmoothTopKLoss(4, mode=mode)(logits, labels)
    loss.backward()
    assert loss == 0
    assert not logits.grad.any()


@pytest.mark.parametrize("mode", ["smooth", "hard", "mixed"])
def test_finite_differences(mode):
    logits, labels = batch((4, 7))
    loss = SmoothTopKLoss(3, 0.3, mode=mode)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), logits.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_finite_at_extremes(dtype):
    logits = torch.tensor([[1e4, -1e4, 0, 0, 0, 3e4], [0] * 6], dtype=dtype, requires_grad=True)
    loss = SmoothTopKLoss(2, 0.1)(logits, torch.tensor([1, 2]))
    loss.backward()
    assert loss.isfinite()
    assert loss.dtype == torch.float32
    assert logits.grad.isfinite().all()
    assert logits.grad.dtype == dtype


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"k": 0}, "k: 0 found"),
        ({"tau": 0.0}, "tau: 0.0 found, expected a finite number above 0"),
        ({"margin": -1.0}, "margin: -1.0 found, expected a finite number of at least 0"),
        ({"mode": "smoth"}, "did you mean smooth"),
        ({"reduction": "average"}, "reduction: 'average' found"),
    ],
)
def test_bad_options(options, parts):
    with pytest.raises(ValueError, match=parts):
        SmoothTopKLoss(**options)


def test_k_above_the_classes():
    with pytest.raises(ValueError, match="k: 5 found for 4 classes, expected 1..4"):
        SmoothTopKLoss(5)(torch.zeros(2, 4), torch.tensor([0, 1]))

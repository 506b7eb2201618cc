"""DFTopK: the formula of the paper over sorted scores, ties, and as many ranks as candidates."""

import math

import pytest
import torch
from torch.nn.functional import logsigmoid

from headsmith.trainer.losses import topk_cross_entropy

OPTIONS = {"method": "dftopk", "top1_mode": "sort", "reduction": "none"}


def by_the_formula(scores, label, k, alpha):
    """Equation and code of the paper: the threshold is the middle of two of the sorted scores."""
    ordered = scores.sort(descending=True).values
    return -logsigmoid((scores[label] - (ordered[k - 1] + ordered[k]) / 2) / alpha)


@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_values_and_gradients_by_the_formula(k, alpha):
    logits = 3 * torch.randn(11, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    p_k = [0.0] * (k - 1) + [1.0]
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = topk_cross_entropy(ours, torch.arange(11), p_k=p_k, m=None, inverse_temperature=1 / alpha, **OPTIONS)
    expected = torch.stack([by_the_formula(row, label, k, alpha) for label, row in enumerate(theirs)])
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(x.sum(), y)[0] for x, y in ((loss, ours), (expected, theirs))))


@pytest.mark.parametrize("m", [4, 5, None])
def test_k_best_of_the_candidates_need_k_plus_1_others(m):
    logits = torch.randn(7, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pruned = topk_cross_entropy(logits, torch.arange(7), p_k=[0.5, 0.5], m=m, **OPTIONS)
    full = topk_cross_entropy(logits, torch.arange(7), p_k=[0.5, 0.5], m=None, **OPTIONS)
    torch.testing.assert_close(pruned, full)


@pytest.mark.parametrize("classes", [4, 50])
@pytest.mark.parametrize("k", [1, 2])
def test_of_equal_scores_the_label_has_its_whole_gradient(k, classes):
    logits = torch.zeros(classes, classes, requires_grad=True)
    p_k = [0.0] * (k - 1) + [1.0]
    loss = topk_cross_entropy(logits, torch.arange(classes), p_k=p_k, m=None, inverse_temperature=0.5, **OPTIONS)
    assert loss.tolist() == pytest.approx([math.log(2)] * classes)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient.diagonal().tolist() == pytest.approx([-0.25] * classes)
    assert gradient.sum(dim=1).tolist() == pytest.approx([0.0] * classes)

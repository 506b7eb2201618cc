"""Values of the objectives: against their definitions written out, numerical optima, and other losses."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from headsmith.trainer.losses import topk_cross_entropy


def batch(rows=8, classes=7):
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (rows,), generator=generator)


def losses_of(logits, labels, k, **options):
    p_k = [0.0] * (k - 1) + [1.0]
    return topk_cross_entropy(logits, labels, p_k=p_k, m=None, reduction="none", **options)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_the_calibrated_hinge_by_its_definition(k):
    logits, labels = batch()
    found = losses_of(logits, labels, k, method="calibrated_topk_hinge")
    for row, label, loss in zip(logits.numpy(), labels.tolist(), found.tolist(), strict=True):
        assert loss == pytest.approx(max(0, 1 + np.sort(row)[::-1][k] - row[label]))


def test_the_calibrated_hinge_has_no_slope_where_the_label_is_next():
    """s_[k+1] is the label's own score there: a constant 1, as the paper's formula says."""
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = losses_of(logits, torch.tensor([2]), 2, method="calibrated_topk_hinge")
    assert loss.item() == 1
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    ("q", "of_p"),
    [
        (-1.0, lambda p: 1 / p - 1),
        (-0.5, lambda p: 2 * (p**-0.5 - 1)),
        (0.0, lambda p: -p.log()),
        (0.7, lambda p: (1 - p**0.7) / 0.7),
        (1.0, lambda p: 1 - p),
    ],
)
def test_comp_sum_by_its_definition_for_every_k(q, of_p, k):
    logits, labels = batch()
    p = logits.softmax(1).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(losses_of(logits, labels, k, method="comp_sum", comp_sum_q=q), of_p(p))


def test_the_sum_exponential_goes_on_along_its_tangent():
    """From p^-1 = e^10 on; the true value and slope there are e^10 - 1 and e^10."""
    logits = torch.tensor([[0.0, 12.0], [0.0, 10.0]], dtype=torch.float64).requires_grad_()
    labels = torch.tensor([0, 0])
    losses = losses_of(logits, labels, 1, method="comp_sum", comp_sum_q=-1.0)
    cost = cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(losses, np.exp(10) * (1 + cost - 10) - 1)
    assert torch.autograd.grad(losses.sum(), logits)[0].abs().max() <= np.exp(10)


def test_comp_sum_of_a_wrong_row_is_what_generalised_cross_entropy_is_for():
    """Its slope falls to 0 where p does, so that wrong labels do not pull; that of cross-entropy goes to 1."""
    logits = torch.tensor([[0.0, 20.0]], dtype=torch.float64, requires_grad=True)
    slopes = [
        torch.autograd.grad(losses_of(logits, torch.tensor([0]), 1, method="comp_sum", comp_sum_q=q).sum(), logits)[0]
        for q in (0.0, 0.7)
    ]
    assert slopes[0][0, 0] == pytest.approx(-1, abs=1e-6)
    assert abs(slopes[1][0, 0]) < 1e-5

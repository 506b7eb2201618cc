"""Average top-k: the mean of the hardest rows' cross-entropies, against a sort and its variational form."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch.nn.functional import cross_entropy

from headsmith.trainer.losses import topk_cross_entropy


def batch(rows=10, classes=7):
    generator = torch.Generator().manual_seed(4)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (rows,), generator=generator)


def average(logits, labels, share, **options):
    return topk_cross_entropy(logits, labels, method="average_topk", hardest_share=share, m=None, **options)


@pytest.mark.parametrize(("share", "kept"), [(0.05, 1), (0.1, 1), (0.3, 3), (0.31, 4), (0.7, 7), (1.0, 10)])
def test_the_mean_of_the_hardest_rows(share, kept):
    logits, labels = batch()
    each = cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(average(logits, labels, share), each.topk(kept).values.mean())


@pytest.mark.parametrize("kept", [1, 4, 10])
def test_the_least_of_its_variational_form(kept):
    """min over t of t + sum of [l - t]_+ / k (their lemma 1), as a linear program."""
    logits, labels = batch()
    each = cross_entropy(logits, labels, reduction="none").numpy()
    cost = np.r_[1.0, np.full(10, 1 / kept)]
    slack = np.c_[-np.ones(10), -np.eye(10)]
    least = linprog(cost, A_ub=slack, b_ub=-each, bounds=[(None, None)] + [(0, None)] * 10).fun
    assert average(logits, labels, kept / 10).item() == pytest.approx(least)


def test_all_rows_are_cross_entropy():
    logits, labels = batch()
    torch.testing.assert_close(average(logits, labels, 1.0), cross_entropy(logits, labels))


def test_rows_that_are_left_out_have_no_slope_and_the_others_more():
    logits, labels = batch()
    logits.requires_grad_()
    losses = average(logits, labels, 0.3, reduction="none")
    each = cross_entropy(logits, labels, reduction="none")
    kept = each >= each.topk(3).values[-1]
    torch.testing.assert_close(losses, torch.where(kept, each * 10 / 3, 0.0))
    (slope,) = torch.autograd.grad(losses.sum(), logits)
    assert (slope[~kept] == 0).all()
    assert (slope[kept] != 0).any(dim=1).all()


def test_equal_losses_share_the_last_places():
    logits = torch.zeros(4, 6, requires_grad=True)
    loss = average(logits, torch.tensor([0, 0, 0, 0]), 0.5)
    (slope,) = torch.autograd.grad(loss, logits)
    assert loss.item() == pytest.approx(np.log(6))
    torch.testing.assert_close(slope, slope[:1].expand(4, -1))


def test_ignored_rows_are_not_counted():
    logits, labels = batch()
    kept = torch.tensor([True] * 6 + [False] * 4)
    expected = average(logits[kept], labels[kept], 0.5)
    torch.testing.assert_close(average(logits, labels.where(kept, -100), 0.5), expected)
    assert average(logits, torch.full((10,), -100), 0.5) == 0
    assert average(logits[:0], labels[:0], 0.5) == 0


def test_a_row_of_several_labels_is_one_row():
    logits, labels = batch()
    pairs = torch.stack([labels, labels.roll(1)], dim=1)
    each = torch.stack([cross_entropy(logits, column, reduction="none") for column in pairs.t()]).mean(0)
    expected = each.topk(5).values.mean()
    torch.testing.assert_close(average(logits, pairs, 0.5), expected)
    compiled = torch.compile(average, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, pairs, 0.5), expected)


def test_class_weights_are_part_of_a_row_s_loss():
    logits, labels = batch()
    weight = torch.linspace(0.5, 2, 7, dtype=torch.float64)
    each = cross_entropy(logits, labels, weight, reduction="none")
    expected = each.topk(5).values.sum() * 2 / weight[labels].sum()
    torch.testing.assert_close(average(logits, labels, 0.5, weight=weight), expected)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan"), True, "half"])
def test_bad_shares(share):
    with pytest.raises(ValueError, match=r"hardest_share: .* found, expected a number in \(0, 1\]") as found:
        average(*batch(), share)
    assert "\n" not in str(found.value)

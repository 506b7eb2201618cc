"""The noised top-k losses: against normal order statistics in closed form, the authors' formula, and their limit."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from headsmith.trainer.losses import TopKCrossEntropy, topk_cross_entropy
from headsmith.trainer.losses.noise import normal_draws

COUNTS = torch.tensor([1000, 1, 16, 81, 0])


def batch(rows=6, classes=5):
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (rows,), generator=generator)


def losses_of(logits, labels, k, method="noised_topk", **options):
    p_k = [0.0] * (k - 1) + [1.0]
    return topk_cross_entropy(logits, labels, p_k=p_k, m=None, reduction="none", method=method, **options)


def authors(scores, label, k, epsilon, margin):
    """Their code's steps over the same draws: the k-th lowest of the negated noised scores, its mean, the hinge."""
    order = [label, *[j for j in np.argsort(-scores, kind="stable") if j != label]]
    noise = normal_draws(0, 64, len(scores), torch.device("cpu")).numpy()
    noised = scores[order] + epsilon * noise
    return max(0.0, margin - np.partition(-noised, k, axis=1)[:, k].mean() - scores[label])


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_authors_formula(k, epsilon):
    logits, labels = batch()
    found = losses_of(logits, labels, k, inverse_temperature=1 / epsilon)
    for row, label, loss in zip(logits.numpy(), labels.tolist(), found.tolist(), strict=True):
        assert loss == pytest.approx(authors(row, label, k, epsilon, 1.0))


def test_many_samples_of_two_scores_are_the_lower_of_two_normals():
    """E min = the mean less half of E |d|, d normal with deviation epsilon sqrt 2 (the folded normal's mean)."""
    high, low, epsilon = 0.7, 0.2, 0.8
    gap, deviation = high - low, epsilon * math.sqrt(2)
    folded = deviation * math.sqrt(2 / math.pi) * math.exp(-(gap**2) / (2 * deviation**2))
    folded += gap * (1 - 2 * norm.cdf(-gap / deviation))
    found = losses_of(
        torch.tensor([[high, low]]), torch.tensor([0]), 1, inverse_temperature=1 / epsilon, samples=200_000
    )
    assert found.item() == pytest.approx(1 + (high + low - folded) / 2 - high, abs=0.01)


def test_many_samples_of_equal_scores_are_normal_order_statistics():
    """The second highest of five standard normals, by the integral over its density."""
    density = lambda x: 20 * x * norm.cdf(x) ** 3 * norm.sf(x) * norm.pdf(x)  # noqa: E731
    found = losses_of(torch.zeros(1, 5), torch.tensor([2]), 1, samples=200_000)
    assert found.item() == pytest.approx(1 + quad(density, -9, 9)[0], abs=0.01)


@pytest.mark.parametrize("k", [1, 3])
def test_without_noise_it_is_the_calibrated_hinge(k):
    logits, labels = batch()
    expected = losses_of(logits, labels, k, "calibrated_topk_hinge")
    torch.testing.assert_close(losses_of(logits, labels, k, inverse_temperature=1e12), expected)


def test_the_k_plus_1_highest_scores_have_a_slope():
    """Where the calibrated hinge has none: the label is the next after the k best."""
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(losses_of(logits, torch.tensor([2]), 2).sum(), logits)
    assert slope[0, 2] < 0
    assert (slope[0, :2] > 0).all()
    assert slope.sum().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("k", [1, 2])
def test_margins_by_class(k):
    """`max_margin` for the rarest class, smaller by the fourth root of the counts; a class without rows has one."""
    logits, _ = batch(5)
    labels = torch.arange(5)
    found = losses_of(logits, labels, k, "imbalanced_noised_topk", class_counts=COUNTS, max_margin=3.0)
    margins = 3 * np.array([1000.0, 1, 16, 81, 1]) ** -0.25
    for row, label, loss in zip(logits.numpy(), labels.tolist(), found.tolist(), strict=True):
        assert loss == pytest.approx(authors(row, label, k, 1.0, margins[label]))


def test_margins_go_with_every_form_of_labels():
    logits, labels = batch(5)
    options = {"method": "imbalanced_noised_topk", "class_counts": COUNTS, "p_k": [1.0], "m": None}
    module = TopKCrossEntropy(**options)
    expected = module(logits, labels)
    torch.testing.assert_close(module(logits, labels.unsqueeze(1)), expected)
    torch.testing.assert_close(module(logits, torch.nn.functional.one_hot(labels, 5).double()), expected)
    torch.testing.assert_close(topk_cross_entropy(logits, labels, **options), expected)
    compiled = torch.compile(topk_cross_entropy, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, labels, **options), expected)


def test_counts_are_in_the_state_which_may_lack_them():
    """As `weight` of torch.nn.CrossEntropyLoss is; states of before have none."""
    options = {"method": "imbalanced_noised_topk", "p_k": [1.0], "weight": torch.ones(5)}
    module, other = (
        TopKCrossEntropy(class_counts=COUNTS, **options),
        TopKCrossEntropy(class_counts=COUNTS + 1, **options),
    )
    state = module.state_dict()
    assert set(state) == {"weight", "class_counts"}
    torch.nn.Sequential(other).load_state_dict({f"0.{name}": value for name, value in state.items()})
    assert torch.equal(other.class_counts, COUNTS)
    old = torch.nn.Sequential(TopKCrossEntropy(class_counts=COUNTS, **options))
    old.load_state_dict({"0.weight": torch.full((5,), 2.0)})
    assert torch.equal(old[0].class_counts, COUNTS)
    assert torch.equal(old[0].weight, torch.full((5,), 2.0))


def test_the_description_has_the_shapes_of_what_is_by_class():
    shown = repr(TopKCrossEntropy([1.0], "imbalanced_noised_topk", class_counts=COUNTS, weight=torch.ones(5)))
    assert "weight=(5,), class_counts=(5,)" in shown
    assert "class_counts" not in repr(TopKCrossEntropy(method="imbalanced_noised_topk"))


def test_equal_counts_are_one_margin():
    logits, labels = batch()
    expected = losses_of(logits, labels, 2)
    for counts in (None, torch.full((5,), 7), torch.full((5,), 7.0)):
        found = losses_of(logits, labels, 2, "imbalanced_noised_topk", class_counts=counts)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"class_counts": torch.ones(4)}, ValueError, r"class_counts has shape \(4,\), expected \(5,\)"),
        ({"class_counts": torch.tensor([1, 2, -1, 1, 1])}, ValueError, "class_counts: -1 found for class 2"),
        ({"class_counts": torch.tensor([1, 2, math.nan, 1, 1])}, ValueError, "class_counts: nan found for class 2"),
        ({"class_counts": torch.tensor([1, math.inf, 3, 1, 1])}, ValueError, "class_counts: inf found for class 1"),
        ({"class_counts": [1, 2, 3, 4, 5]}, TypeError, "class_counts: found list, expected a tensor of numbers"),
        ({"class_counts": torch.ones(5, dtype=torch.bool)}, TypeError, "class_counts: found torch.bool"),
        ({"class_counts": torch.ones(5, device="meta")}, ValueError, "class_counts is on meta and logits on cpu"),
        ({"class_counts": COUNTS, "method": "noised_topk"}, ValueError, "but method 'noised_topk' does not read"),
        ({"max_margin": 0.0}, ValueError, "max_margin: 0.0 found, expected a finite number above 0"),
        ({"samples": 0}, ValueError, "samples: 0 found"),
        ({"inverse_temperature": math.inf}, ValueError, "inverse_temperature: inf found"),
    ],
)
def test_bad_input(options, error, said):
    logits, labels = batch()
    with pytest.raises(error, match=said) as found:
        topk_cross_entropy(logits, labels, **({"method": "imbalanced_noised_topk"} | options))
    assert "\n" not in str(found.value)

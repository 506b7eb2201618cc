"""Values that the authors' package gave, worked through by hand for two items."""

import math

import pytest
import torch

from headsmith.trainer.losses import topk_cross_entropy

LOGITS = torch.tensor([[5, 4, 3, 2, 1, 0], [1, 1.5, -0.5, 2.5, 0, 0.25]])
LABELS = torch.tensor([4, 1])
FIRST_TWO = (0.5, 0.5)
FIRST_THREE = (0.25, 0.25, 0.5)

# distribution, lambda; odd-even and bitonic, each with FIRST_TWO and FIRST_THREE
NETWORKS = [
    ("logistic", 0.0, 2.306209, 1.677095, 1.898746, 1.305852),
    ("cauchy", 0.0, 1.933009, 1.301005, 1.533190, 0.976735),
    ("logistic_phi", 0.25, 2.018099, 1.375032, 1.594121, 1.018638),
    ("logistic_phi", 0.5, 1.782117, 1.146388, 1.380832, 0.826501),
    ("reciprocal", 0.0, 1.685613, 1.055332, 1.291983, 0.735735),
    ("gaussian", 0.0, 2.851112, 2.483041, 2.796178, 2.390733),
]
PAIRWISE = [("neuralsort", 2.901604, 1.659425), ("softsort", 2.237985, 1.492771)]


def golden_loss(p_k, dtype, **options) -> float:
    logits = LOGITS.to(dtype)
    return topk_cross_entropy(
        logits, LABELS, p_k=p_k, m=4, inverse_temperature=1, floor=1e-7, top1_mode="sm", **options
    ).item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("distribution", "art_lambda", *(f"value{i}" for i in range(4))), NETWORKS)
def test_networks(distribution, art_lambda, value0, value1, value2, value3, dtype):
    options = {"distribution": distribution, "art_lambda": art_lambda}
    values = [
        golden_loss(p_k, dtype, method=method, **options)
        for method in ("odd_even", "bitonic")
        for p_k in (FIRST_TWO, FIRST_THREE)
    ]
    assert values == pytest.approx([value0, value1, value2, value3], abs=3e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("method", "first_two", "first_three"), PAIRWISE)
def test_pairwise(method, first_two, first_three, dtype):
    values = [golden_loss(p_k, dtype, method=method) for p_k in (FIRST_TWO, FIRST_THREE)]
    assert values == pytest.approx([first_two, first_three], abs=3e-6)


@pytest.mark.parametrize("method", ["odd_even", "bitonic", "splitter_selection"])
@pytest.mark.parametrize(
    ("distribution", "p_k", "probability"),
    [
        ("cauchy", (1.0,), 0.75),
        ("logistic", (1.0,), 1 / (1 + math.exp(-1))),
        ("logistic", FIRST_TWO, 0.5 + 0.5 / (1 + math.exp(-1))),
    ],
)
def test_two_items(method, distribution, p_k, probability):
    loss = topk_cross_entropy(
        torch.tensor([[1.0, 0.0]]),
        torch.tensor([0]),
        p_k=p_k,
        method=method,
        distribution=distribution,
        inverse_temperature=1,
        top1_mode="sort",
    )
    assert loss.item() == pytest.approx(-math.log(probability), abs=1e-6)

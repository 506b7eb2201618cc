"""Three tiers: the loss in a type is no further from float64 than the textbook's formula in that type."""

import pytest
import torch

from headsmith.trainer.losses import topk_cross_entropy
from headsmith.trainer.losses.relaxations.networks import network

P_K = (0.5, 0.0, 0.5)
M = 8


def naive_neuralsort(s):
    scaling = s.shape[1] + 1 - 2 * torch.arange(1, 4, dtype=s.dtype)
    deviations = (s[:, :, None] - s[:, None, :]).abs().sum(dim=2)
    return (scaling[None, :, None] * s[:, None, :] - deviations[:, None, :]).softmax(dim=2)[:, :, 0]


def naive_softsort(s):
    highest = s.sort(dim=1, descending=True).values[:, :3]
    return (-(highest[:, :, None] - s[:, None, :]).abs()).softmax(dim=2)[:, :, 0]


def naive_sinkhorn(s):
    m = s.shape[1]
    centred = s - s.mean(dim=1, keepdim=True)
    squashed = torch.sigmoid(centred / (1 + (centred**2).mean(dim=1, keepdim=True)) ** 0.5)
    plan = (-((torch.linspace(1, 0, m, dtype=s.dtype)[:, None] - squashed[:, None, :]) ** 2)).exp()
    for _ in range(50):
        plan = plan / plan.sum(dim=1, keepdim=True)
        plan = plan / plan.sum(dim=2, keepdim=True)
    return plan[:, :3, 0]


def naive_network(method):
    def run(s):
        m = s.shape[1]
        wires = list(s.unbind(dim=1))
        shares = [torch.full_like(wire, float(i == 0)) for i, wire in enumerate(wires)]
        for layer in network(method, m, 3):
            for a, b in layer:
                keep = torch.sigmoid(wires[b] - wires[a])
                for values in (wires, shares):
                    low, high = values[a], values[b]
                    values[a], values[b] = keep * low + (1 - keep) * high, (1 - keep) * low + keep * high
        return torch.stack([shares[m - 1 - r] for r in range(3)], dim=1)

    return run


NAIVE = {"neuralsort": naive_neuralsort, "softsort": naive_softsort, "sinkhorn": naive_sinkhorn}
NAIVE |= {method: naive_network(method) for method in ("odd_even", "bitonic", "splitter_selection")}


def naive_loss(method, logits):
    """The label is class 0; the other candidates are in descending order."""
    others = logits[:, 1:].topk(M - 1, dim=1).values
    candidates = torch.cat([logits[:, :1], others], dim=1)
    top = NAIVE[method](candidates).sum(dim=1)
    return -(P_K[0] * candidates.softmax(dim=1)[:, 0] + P_K[2] * top).log()


def our_loss(method, logits):
    labels = torch.zeros(len(logits), dtype=torch.int64)
    options = {"top1_mode": "sm", "distribution": "logistic", "inverse_temperature": 1, "m": M}
    options |= {"sinkhorn_iterations": 50, "sinkhorn_tolerance": 0}
    return topk_cross_entropy(logits, labels, p_k=P_K, method=method, reduction="none", **options)


def with_gradient(loss, method, logits):
    logits = logits.clone().requires_grad_()
    value = loss(method, logits)
    value.sum().backward()
    return value.detach().double(), logits.grad.double()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("method", NAIVE)
def test_error(method, dtype):
    generator = torch.Generator().manual_seed(2)
    logits = torch.stack([torch.randperm(40, generator=generator) for _ in range(32)]).to(dtype) / 8  # exact, no ties
    exact = with_gradient(naive_loss, method, logits.double())
    ours = with_gradient(our_loss, method, logits)
    naive = with_gradient(naive_loss, method, logits)
    rounding = 8 * torch.finfo(torch.float32).eps  # the loss is float32 whatever the logits are
    for truth, value, other, eps in zip(exact, ours, naive, (0, torch.finfo(dtype).eps), strict=True):
        tolerance = max(rounding, eps) * truth.abs().max()
        assert (value - truth).abs().max() <= (other - truth).abs().max() + tolerance

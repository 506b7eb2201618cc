"""Properties and limits of the loss, in closed form."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from headsmith.trainer.loss_defaults import NETWORKS
from headsmith.trainer.losses import DISTRIBUTIONS, topk_cross_entropy

MODES = ["sort", "sm", "smce"]
RELAXATIONS = [{"method": method} for method in ("neuralsort", "softsort", "sinkhorn")] + [
    {"method": method, "distribution": distribution} for method in NETWORKS for distribution in DISTRIBUTIONS
]
# Each distribution on one network, for what does not depend on how steep a comparator is.
PAIRED = RELAXATIONS[:3] + [
    {"method": NETWORKS[i % 3], "distribution": distribution} for i, distribution in enumerate(DISTRIBUTIONS)
]
P_KS = st.sampled_from([(1.0,), (0.5, 0.5), (0.0, 1.0), (0.5, 0.0, 0.5), (0.25, 0.5, 0.0, 0.25)])
quick = settings(max_examples=20, deadline=None, derandomize=True)
few = settings(quick, max_examples=10)
every_relaxation = pytest.mark.parametrize("options", RELAXATIONS, ids=lambda options: "-".join(options.values()))
paired = pytest.mark.parametrize("options", PAIRED, ids=lambda options: "-".join(options.values()))
every_mode = pytest.mark.parametrize("top1_mode", MODES)


@st.composite
def rows(draw, ties: bool = False):
    """Scores (1, n) in float64, a label (1,)."""
    n = draw(st.integers(5, 12))
    values = st.lists(st.integers(-4, 4), min_size=n, max_size=n) if ties else st.permutations(range(n))
    scores = torch.tensor([draw(values)], dtype=torch.float64)
    return scores, torch.tensor([draw(st.integers(0, n - 1))])


@every_relaxation
@every_mode
@quick
@given(row=rows(), p_k=P_KS)
def test_cold_limit_is_the_hard_top_k(options, top1_mode, row, p_k):
    scores, label = row
    rank = int((scores > scores[0, label]).sum()) + 1
    hits = [w * (rank <= k) for k, w in enumerate(p_k, start=1)]
    softmax = scores.softmax(dim=1)[0, label].item()
    loss = topk_cross_entropy(
        scores, label, p_k=p_k, m=None, top1_mode=top1_mode, inverse_temperature=1e8, **options
    ).item()
    p = torch.tensor(-loss).exp().item()
    if top1_mode == "sort":
        assert p == pytest.approx(sum(hits), abs=1e-3)
    elif top1_mode == "sm":
        assert p == pytest.approx(p_k[0] * softmax + sum(hits[1:]), abs=1e-3)
    elif (rest := 1 - p_k[0]) > 0:
        assert p == pytest.approx(softmax ** p_k[0] * (sum(hits[1:]) / rest) ** rest, abs=1e-3)


@every_relaxation
@every_mode
@pytest.mark.parametrize("m", [None, 4])
@few
@given(row=rows(ties=True), p_k=P_KS, shift=st.integers(-50, 50), data=st.data())
def test_renumbered_classes_and_shifted_scores(options, m, top1_mode, row, p_k, shift, data):
    scores, label = row
    n = scores.shape[1]
    order = torch.tensor(data.draw(st.permutations(range(n))))
    options = options | {"p_k": p_k, "m": m, "top1_mode": top1_mode, "softmax_over": "classes"}
    renumbered = torch.argsort(order)[label]
    torch.testing.assert_close(
        topk_cross_entropy(scores[:, order] + shift, renumbered, **options),
        topk_cross_entropy(scores, label, **options),
    )


@paired
@pytest.mark.parametrize("top1_mode", ["sm", "smce"])
def test_top_1_without_pruning_is_cross_entropy(options, top1_mode):
    logits = 3 * torch.randn(9, 30, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(9)
    ours, torch_s = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = topk_cross_entropy(ours, labels, p_k=[1.0], m=None, top1_mode=top1_mode, **options)
    expected = cross_entropy(torch_s, labels)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, torch_s.grad, rtol=1e-5, atol=1e-7)


@quick
@given(row=rows(ties=True), m=st.integers(1, 14))
def test_pruned_top_1_costs_at_most_cross_entropy(row, m):
    scores, label = row
    full = cross_entropy(scores, label)
    pruned = topk_cross_entropy(scores, label, p_k=[1.0], m=m, method="neuralsort")
    assert pruned <= full + 1e-12
    over_classes = topk_cross_entropy(scores, label, p_k=[1.0], m=m, method="neuralsort", softmax_over="classes")
    torch.testing.assert_close(over_classes, full)
    if m >= scores.shape[1]:
        torch.testing.assert_close(pruned, full)


@every_relaxation
@every_mode
def test_a_right_and_saturated_row_costs_nothing(options, top1_mode):
    logits = torch.randn(2, 40, generator=torch.Generator().manual_seed(0))
    logits[:, 7] = 1e7
    for p_k in [(1.0,), (0.5, 0.5), (0.5, 0.0, 0.5), (0.2, 0.2, 0.2, 0.2, 0.2)]:
        steep = {"inverse_temperature": 1000} if options["method"] == "sinkhorn" else {}
        loss = topk_cross_entropy(logits, torch.tensor([7, 7]), p_k=p_k, top1_mode=top1_mode, **steep, **options)
        assert 0 <= loss.item() + 1e-6 < 1e-4


@paired
@every_mode
@pytest.mark.parametrize("m", [8, 16, 1000])
def test_as_many_candidates_as_classes_is_no_pruning(options, top1_mode, m):
    logits = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(5)
    options = options | {"top1_mode": top1_mode, "inverse_temperature": 2.0}
    full = topk_cross_entropy(logits, labels, m=None, **options)
    torch.testing.assert_close(topk_cross_entropy(logits, labels, m=m, **options), full, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", PAIRED[2:], ids=lambda options: "-".join(options.values()))
@every_mode
def test_as_many_ranks_as_candidates(options, top1_mode):
    """Where columns of P sum to 1: every candidate is among the top m, so that the loss is 0."""
    logits = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(4)
    loss = topk_cross_entropy(
        logits, labels, p_k=[0, 0, 0, 0, 1.0], m=5, top1_mode=top1_mode, sinkhorn_iterations=3000, **options
    )
    assert loss.item() == pytest.approx(0, abs=1e-6)

"""NaN in logits and soft targets: the loss of its row, and of no other."""

import pytest
import torch
from loss_messages import LABELS, LOGITS, NAN

from headsmith.trainer.losses import (
    METHODS,
    topk_cross_entropy,
)


@pytest.mark.parametrize("share", [-0.5, NAN, torch.inf])
def test_a_compiled_graph_makes_rows_of_such_targets_nan(share):
    targets = torch.full((4, 7), 1 / 7)
    targets[2, 3] = share
    loss = torch.compile(topk_cross_entropy, fullgraph=True, backend="aot_eager")
    assert loss(LOGITS, targets, reduction="none").isnan().tolist() == [False, False, True, False]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("top1_mode", ["sort", "sm", "smce"])
@pytest.mark.parametrize("column", [2, 5])
def test_nan_is_never_a_number(method, top1_mode, column):
    """Not even where the NaN is of a class that pruning leaves out."""
    logits = torch.arange(28.0).reshape(4, 7)
    logits[2, column] = NAN
    options = {"p_k": [1.0] if method == "softmax" else [0.5, 0.5], "m": 2, "top1_mode": top1_mode}
    losses = topk_cross_entropy(logits, LABELS, method=method, reduction="none", **options)
    assert losses.isnan().tolist() == [False, False, True, False]
    assert topk_cross_entropy(logits, LABELS, method=method, **options).isnan()


@pytest.mark.parametrize("softmax_over", ["candidates", "classes"])
@pytest.mark.parametrize("method", METHODS)
def test_nan_of_an_ignored_row_does_not_count(method, softmax_over):
    logits = LOGITS.clone()
    logits[2] = NAN
    logits.requires_grad_()
    options = {"p_k": [1.0] if method == "softmax" else [0.5, 0.5], "method": method, "softmax_over": softmax_over}
    loss = topk_cross_entropy(logits, torch.tensor([0, 1, -100, 3]), **options)
    expected = topk_cross_entropy(LOGITS[[0, 1, 3]], torch.tensor([0, 1, 3]), **options)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert logits.grad.isfinite().all()

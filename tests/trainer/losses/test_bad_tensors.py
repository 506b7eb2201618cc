"""Tensors that a loss cannot take: class weights, layouts, devices and types."""

import re

import pytest
import torch
from loss_messages import LABELS, LOGITS, assert_message

from headsmith.trainer.losses import (
    SmoothTopKLoss,
    TopKCrossEntropy,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
    linear_topk_cross_entropy,
    relaxed_topk,
    topk_cross_entropy,
)


@pytest.mark.parametrize("build", [TopKCrossEntropy, SmoothTopKLoss, TopKHingeLoss])
@pytest.mark.parametrize(("weight", "found"), [([1.0] * 7, "list"), (torch.ones(7, dtype=torch.int64), "torch.int64")])
def test_weight_that_is_no_floating_tensor(build, weight, found):
    with pytest.raises(TypeError) as excinfo:
        build(weight=weight)
    assert_message(excinfo, f"weight: found {found}", "floating")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("weight", lambda weight: TopKCrossEntropy(weight=weight)),
        ("weight", lambda weight: TopKHingeLoss(weight=weight)),
        ("weight", lambda weight: TopKEntropyLoss(weight=weight)),
        ("weight", lambda weight: TruncatedTopKEntropyLoss(weight=weight)),
        ("weight", lambda weight: topk_cross_entropy(LOGITS[:, :3], LABELS % 3, p_k=[1.0], weight=weight)),
        (
            "class_weight",
            lambda weight: linear_topk_cross_entropy(
                LOGITS, torch.zeros(3, 7), None, LABELS % 3, p_k=[1.0], class_weight=weight
            ),
        ),
    ],
    ids=["cross-entropy", "hinge", "entropy", "truncated", "function", "linear"],
)
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([1.0, -1.0, 1.0], "-1 found for class 1, expected finite weights of 0 or more"),
        ([1.0, 1.0, float("nan")], "nan found for class 2, expected finite"),
        ([float("inf"), 0.0, 0.0], "inf found for class 0, expected finite"),
        ([1.0, float("-inf"), 0.0], "-inf found for class 1, expected finite"),
        ([0.0, 0.0, 0.0], "all 0 found, expected a weight above 0 for one class at least"),
    ],
)
def test_class_weights_that_weigh_nothing_or_less(name, call, wrong, told):
    with pytest.raises(ValueError, match=f"^{name}: {re.escape(told)}"):
        call(torch.tensor(wrong))


def test_a_class_weight_of_0_leaves_its_class_out():
    logits, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 2, 1, 1, 2, 0])
    weight = torch.tensor([1.0, 0.0, 2.0])
    expected = torch.nn.functional.cross_entropy(logits, labels, weight=weight)
    torch.testing.assert_close(topk_cross_entropy(logits, labels, method="softmax", weight=weight), expected)


def test_class_weights_that_are_loaded_are_looked_at_too():
    loss = TopKCrossEntropy([1.0], "softmax", weight=torch.ones(3))
    loss.load_state_dict({"weight": torch.tensor([1.0, -2.0, 1.0])})
    with pytest.raises(ValueError, match="weight: -2 found for class 1"):
        loss(torch.zeros(2, 3), torch.tensor([0, 2]))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("logits", lambda change: topk_cross_entropy(change(LOGITS), LABELS)),
        ("logits", lambda change: TopKHingeLoss(2)(change(LOGITS), LABELS)),
        ("scores", lambda change: relaxed_topk(change(LOGITS), 2)),
        ("weight", lambda change: TopKHingeLoss(2, weight=change(torch.ones(7)))),
        ("p_k", lambda change: topk_cross_entropy(LOGITS, LABELS, p_k=change(torch.tensor([0.5, 0.5])))),
        ("features", lambda change: linear_topk_cross_entropy(change(LOGITS), torch.ones(5, 7), None, LABELS)),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_a_sparse_tensor(name, call, layout):
    if layout is torch.sparse_csr and name in ("weight", "p_k"):
        layout = torch.sparse_coo  # of one axis there is no other
    with pytest.raises(TypeError, match=f"{name}: found a tensor of layout {layout}, expected a dense one"):
        call(lambda tensor: tensor.to_sparse(layout=layout))


def test_more_tensors_that_are_not_dense():
    with pytest.raises(TypeError, match="labels: found a tensor of layout torch.sparse_coo, expected a dense one"):
        topk_cross_entropy(LOGITS, LABELS.to_sparse())
    with pytest.raises(TypeError, match="logits: found a tensor of layout torch.jagged|logits: found a nested tensor"):
        topk_cross_entropy(torch.nested.nested_tensor(list(LOGITS), layout=torch.jagged), LABELS)


def test_tensors_on_meta_have_shapes_and_no_values():
    logits = LOGITS.to("meta")
    assert topk_cross_entropy(logits, logits.softmax(dim=1), reduction="none").shape == (4,)
    assert TopKHingeLoss(2, reduction="none")(logits, logits.softmax(dim=1)).shape == (4,)
    with pytest.raises(TypeError, match="features: found a tensor on meta, without values"):
        linear_topk_cross_entropy(logits, logits, None, LABELS)
    with pytest.raises(ValueError, match="p_k is on meta, without values, and logits on cpu; expected one device"):
        topk_cross_entropy(LOGITS, LABELS, p_k=torch.tensor([0.5, 0.5], device="meta"))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_logits_and_soft_targets_of_8_bits(dtype):
    with pytest.raises(TypeError, match=f"logits: found {dtype}, expected a tensor of a floating type of 16, 32 or 64"):
        topk_cross_entropy(LOGITS.to(dtype), LABELS)
    with pytest.raises(TypeError, match=f"labels are {dtype} of shape"):
        topk_cross_entropy(LOGITS, LOGITS.softmax(dim=1).to(dtype))

"""Bad options, logits and labels of losses: one line that names the argument, what was found and what was expected."""

import pytest
import torch
from loss_messages import LABELS, LOGITS, NAN, assert_message

from headsmith.trainer.loss_defaults import RELAXATIONS
from headsmith.trainer.losses import (
    DISTRIBUTIONS,
    METHODS,
    SmoothTopKLoss,
    TopKCrossEntropy,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
    implementation,
    linear_topk_cross_entropy,
    relaxed_topk,
    topk_cross_entropy,
)


@pytest.mark.parametrize("build", [TopKCrossEntropy, lambda **options: topk_cross_entropy(LOGITS, LABELS, **options)])
@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"p_k": [1.5, -0.5]}, ["p_k", "-0.5", "non-negative"]),
        ({"p_k": [NAN, 1.0]}, ["p_k", "nan", "non-negative"]),
        ({"p_k": [0.5, 0.4]}, ["p_k", "0.9", "expected 1"]),
        ({"p_k": [[1.0, 0.0], [0.5, 0.6]]}, ["p_k: row 1", "1.1", "expected 1"]),
        ({"p_k": []}, ["p_k", "(0,)", "(K,)"]),
        ({"p_k": [0.5, 0, 0.5], "m": 2}, ["p_k: 3 entries found", "m is 2", "at least 3"]),
        ({"p_k": [0.5, 0.5], "method": "softmax"}, ["p_k: 2 entries found", "softmax", "[1]"]),
        ({"method": "neural_sort"}, ["method", "neural_sort", "did you mean neuralsort", *METHODS]),
        ({"method": "bitonic_sort"}, ["method", "did you mean bitonic"]),
        ({"distribution": "cauchi"}, ["distribution", "did you mean cauchy", *DISTRIBUTIONS]),
        ({"top1_mode": "ce"}, ["top1_mode", "'ce'", "sort, sm, smce"]),
        ({"softmax_over": "class"}, ["softmax_over", "did you mean classes", "candidates"]),
        ({"reduction": "average"}, ["reduction", "'average'", "mean, sum, none"]),
        ({"impl": "cuda"}, ["impl", "'cuda'", "auto, torch, triton"]),
        ({"inverse_temperature": 0}, ["inverse_temperature: 0 found", "above 0"]),
        ({"inverse_temperature": -1.0}, ["inverse_temperature: -1.0 found", "above 0"]),
        ({"inverse_temperature": NAN}, ["inverse_temperature: nan found", "finite"]),
        ({"inverse_temperature": float("inf")}, ["inverse_temperature: inf found", "finite"]),
        ({"softsort_power": 0}, ["softsort_power: 0 found", "above 0"]),
        ({"art_lambda": 1.0}, ["art_lambda: 1.0 found", "[0, 1)"]),
        ({"art_lambda": -0.1}, ["art_lambda: -0.1 found", "[0, 1)"]),
        ({"floor": 0.5}, ["floor: 0.5 found", "[0, 0.5)"]),
        ({"sinkhorn_iterations": 0}, ["sinkhorn_iterations: 0 found", "at least 1"]),
        ({"sinkhorn_tolerance": NAN}, ["sinkhorn_tolerance: nan found", "at least 0"]),
        ({"m": 0}, ["m: 0 found", "at least 1"]),
        ({"m": -3}, ["m: -3 found", "at least 1"]),
        ({"label_smoothing": 1.1}, ["label_smoothing: 1.1 found", "[0, 1]"]),
        ({"m": 2.5}, ["m: 2.5 found", "whole number"]),
        ({"m": NAN}, ["m: nan found", "whole number"]),
        ({"m": True}, ["m: True found", "whole number"]),
        ({"p_k": 0.5}, ["p_k", "()", "(K,)"]),
        ({"p_k": "abc"}, ["p_k: 'abc' found", "numbers"]),
        ({"p_k": ["a"]}, ["p_k: ['a'] found", "numbers"]),
        ({"p_k": {0: 1.0}}, ["p_k: {0: 1.0} found", "numbers"]),
        ({"p_k": [0.5, [0.5]]}, ["p_k: [0.5, [0.5]] found", "numbers"]),
        ({"p_k": torch.tensor([0.5, 0.4], dtype=torch.bfloat16)}, ["p_k: sums to 0.9", "expected 1"]),
        ({"inverse_temperature": "a"}, ["inverse_temperature: 'a' found", "number above 0"]),
        ({"art_lambda": None}, ["art_lambda: None found", "[0, 1)"]),
        ({"label_smoothing": "a"}, ["label_smoothing: 'a' found", "[0, 1]"]),
        ({"floor": None}, ["floor: None found", "[0, 0.5)"]),
        ({"sinkhorn_iterations": 2.5}, ["sinkhorn_iterations: 2.5 found", "whole number"]),
        ({"ignore_index": None}, ["ignore_index: None found", "whole number"]),
        ({"ignore_index": 1.5}, ["ignore_index: 1.5 found", "whole number"]),
    ],
)
def test_options(build, options, parts):
    with pytest.raises(ValueError) as excinfo:
        build(**options)
    assert_message(excinfo, *parts)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"p_k": [1 / 8] * 8}, ["p_k: 8 entries found", "7 classes"]),
        ({"p_k": [[1.0, 0.0]] * 3}, ["p_k", "(3, 2)", "(7, K)"]),
        ({"sample_p_k": [[1.0, 0.0]] * 3}, ["sample_p_k", "(3, 2)", "(4, K)"]),
        ({"sample_p_k": [[0.5, 0.6]] * 4}, ["sample_p_k: row 0", "1.1"]),
        ({"sample_p_k": [[0.2] * 5] * 4, "m": 3}, ["sample_p_k: 5 entries found", "m is 3"]),
        ({"sample_p_k": torch.ones(4, 1, device="meta")}, ["sample_p_k is on meta", "logits on cpu"]),
        ({"weight": torch.ones(5)}, ["weight", "(5,)", "(7,)"]),
        ({"weight": torch.ones(7, device="meta")}, ["weight is on meta", "logits on cpu"]),
    ],
)
def test_options_that_do_not_fit_the_logits(options, parts):
    with pytest.raises(ValueError) as excinfo:
        topk_cross_entropy(LOGITS, LABELS, **options)
    assert_message(excinfo, *parts)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("labels", "error", "parts"),
    [
        (torch.tensor([0, 1, 7, 3]), IndexError, ["label 7 in row 2", "0..6", "-100"]),
        (torch.tensor([0, -1, 2, 3]), IndexError, ["label -1 in row 1", "0..6", "-1..3"]),
        (torch.tensor([[0, -100], [1, 9], [2, -100], [3, 4]]), IndexError, ["label 9 in row 1", "0..6"]),
        (torch.tensor([0, 1, 2, 255], dtype=torch.uint8), IndexError, ["label 255 in row 3", "0..6"]),
        (torch.tensor([0.0, 1.0, 2.0, 3.0]), TypeError, ["labels are torch.float32", "(4,)", "integers"]),
        (torch.tensor([True, False, True, True]), TypeError, ["labels are torch.bool", "integers"]),
        (torch.tensor([0, 1, 2]), ValueError, ["(3,)", "(4, 7)"]),
        (torch.tensor(3), ValueError, ["()", "(4, 7)"]),
        (torch.zeros(4, 1, 1, dtype=torch.int64), ValueError, ["(4, 1, 1)", "(4, 7)"]),
        (torch.full((4, 6), 1 / 6), ValueError, ["(4, 6)", "(4, 7)"]),
        (torch.zeros(4, dtype=torch.int64, device="meta"), ValueError, ["labels are on meta", "logits on cpu"]),
    ],
)
def test_labels(method, labels, error, parts):
    with pytest.raises(error) as excinfo:
        topk_cross_entropy(LOGITS, labels, method=method)
    assert_message(excinfo, *parts)


LOSSES = [
    topk_cross_entropy,
    lambda logits, labels: topk_cross_entropy(logits, labels, label_smoothing=0.1),
    lambda logits, labels: linear_topk_cross_entropy(logits, torch.eye(7), None, labels),
    TopKCrossEntropy(method="softmax"),
    SmoothTopKLoss(k=1),
    TopKEntropyLoss(k=2),
]


@pytest.mark.parametrize("share", [-0.5, -1e-9, NAN, torch.inf, -torch.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_soft_targets_that_are_no_shares(loss, share):
    targets = torch.full((4, 7), 1 / 7)
    targets[2, 3] = share
    with pytest.raises(ValueError) as excinfo:
        loss(LOGITS, targets)
    assert_message(excinfo, f"labels hold {share:g} for class 3 in row 2", "not negative")
    assert loss(LOGITS, torch.zeros(4, 7)) == 0


@pytest.mark.parametrize(
    "loss", [TopKCrossEntropy([1.0]), SmoothTopKLoss(k=1), lambda *x: topk_cross_entropy(*x, p_k=[1.0])]
)
@pytest.mark.parametrize(
    ("logits", "error", "parts"),
    [
        (torch.zeros(4, 7, dtype=torch.int64), TypeError, ["logits: found torch.int64", "floating"]),
        (LOGITS.tolist(), TypeError, ["logits: found list", "floating"]),
        (None, TypeError, ["logits: found NoneType", "floating"]),
        (LOGITS.numpy(), TypeError, ["logits: found ndarray", "floating"]),
        (torch.zeros(7), ValueError, ["(7,)", "(B, C)"]),
        (torch.zeros(4, 7, 2), ValueError, ["(4, 7, 2)", "(B, C)"]),
        (torch.zeros(4, 0), ValueError, ["(4, 0)", "at least one class"]),
    ],
)
def test_logits(loss, logits, error, parts):
    with pytest.raises(error) as excinfo:
        loss(logits, LABELS)
    assert_message(excinfo, *parts)


@pytest.mark.parametrize("labels", [LABELS.tolist(), None, LABELS.numpy()])
@pytest.mark.parametrize("loss", [TopKCrossEntropy(), SmoothTopKLoss(k=1)])
def test_labels_that_are_no_tensor(loss, labels):
    with pytest.raises(TypeError) as excinfo:
        loss(LOGITS, labels)
    assert_message(excinfo, f"labels: found {type(labels).__name__}", "expected a tensor")


@pytest.mark.parametrize("k", [2.5, True, "a", 0])
@pytest.mark.parametrize("build", [SmoothTopKLoss, TopKHingeLoss, TopKEntropyLoss, lambda k: relaxed_topk(LOGITS, k)])
def test_k(build, k):
    with pytest.raises(ValueError) as excinfo:
        build(k=k)
    assert_message(excinfo, f"k: {k!r} found", "whole number in 1..")


def test_unknown_implementation():
    with pytest.raises(ValueError) as excinfo:
        implementation("cuda", LOGITS)
    assert_message(excinfo, "impl: 'cuda' found", "auto, torch, triton")


@pytest.mark.parametrize("method", ["sinkhorn", "bitonic"])
def test_second_derivative_is_refused(method):
    """Also under a constant upstream gradient, which `once_differentiable` would let pass as zero."""
    logits = LOGITS.clone().requires_grad_()
    loss = topk_cross_entropy(logits, LABELS, method=method, p_k=[1.0], top1_mode="sort", reduction="sum")
    with pytest.raises(RuntimeError) as excinfo:
        torch.autograd.grad(loss, logits, create_graph=True)
    assert_message(excinfo, "second derivative", "create_graph=False")


@pytest.mark.parametrize(
    ("arguments", "error", "parts"),
    [
        ({"method": "softmax"}, ValueError, ["method", "softmax", *RELAXATIONS]),
        ({"k": 0}, ValueError, ["k: 0 found", "1..n"]),
        ({"k": 8}, ValueError, ["k: 8 found", "1..n"]),
        ({"scores": torch.zeros(7)}, ValueError, ["(7,)", "(B, n)"]),
        ({"scores": LOGITS.tolist()}, TypeError, ["scores: found list", "floating"]),
        ({"scores": torch.zeros(4, 7, dtype=torch.int32)}, TypeError, ["torch.int32", "floating"]),
        ({"inverse_temperature": 0.0}, ValueError, ["inverse_temperature: 0.0 found"]),
    ],
)
def test_relaxed_topk(arguments, error, parts):
    with pytest.raises(error) as excinfo:
        relaxed_topk(**({"scores": LOGITS, "k": 3} | arguments))
    assert_message(excinfo, *parts)


@pytest.mark.parametrize("m", ["a", 0, 2.5, True])
def test_candidates_that_the_implementation_is_asked_for(m):
    with pytest.raises(ValueError, match=f"m: {m!r} found, expected a whole number of at least 1"):
        implementation("auto", LOGITS, m)


def test_the_implementation_is_asked_for_tensors():
    with pytest.raises(TypeError, match="logits: found ndarray, expected a tensor"):
        implementation("auto", LOGITS.numpy(), 16)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SmoothTopKLoss(foo=1), "foo: no keyword of SmoothTopKLoss; expected some of k, tau, margin"),
        (lambda: TopKHingeLoss(varient="beta"), "varient: no keyword of TopKHingeLoss; did you mean variant?"),
        (lambda: TopKEntropyLoss(redction="sum"), "redction: no keyword of TopKEntropyLoss; did you mean reduction?"),
        (lambda: TruncatedTopKEntropyLoss(wieght=None), "wieght: no keyword of TruncatedTopKEntropyLoss; did you mean"),
        (lambda: relaxed_topk(LOGITS, 2, tau=1.0), "tau: no keyword of relaxed_topk; expected some of scores, k"),
    ],
)
def test_a_misspelt_keyword_is_told_with_those_that_there_are(call, said):
    with pytest.raises(TypeError) as excinfo:
        call()
    assert_message(excinfo, said)


def test_what_is_no_name_is_near_none():
    with pytest.raises(ValueError, match=f"method: None found, expected one of .*{METHODS[-1]}$"):
        TopKCrossEntropy(method=None)

"""The module as part of a program: moved, copied, saved, under autocast, on the implementation it names."""

import copy
import pickle

import pytest
import torch

from headsmith.trainer.losses import (
    METHODS,
    SmoothTopKLoss,
    TopKCrossEntropy,
    default_inverse_temperature,
    implementation,
    topk_cross_entropy,
)

LOGITS = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 3, 11])

# Their loss is 0 beyond it.
WITH_A_MARGIN = ("topk_hinge", "calibrated_topk_hinge", "sparse_topk", "noised_topk", "imbalanced_noised_topk")


@pytest.mark.parametrize("method", METHODS)
def test_module_is_the_function(method):
    torch.testing.assert_close(
        TopKCrossEntropy(method=method)(LOGITS, LABELS), topk_cross_entropy(LOGITS, LABELS, method=method)
    )


@pytest.mark.parametrize(
    "move", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss)), lambda loss: loss.double()]
)
@pytest.mark.parametrize("weight", [None, torch.linspace(1, 2, 12)])
def test_copies_and_moves_give_the_same(move, weight):
    loss = TopKCrossEntropy(p_k=[0.5, 0.25, 0.25], method="bitonic", weight=weight)
    torch.testing.assert_close(move(loss)(LOGITS, LABELS), loss(LOGITS, LABELS))


def test_state_is_that_of_torch_s_cross_entropy():
    weight = torch.linspace(1, 2, 12)
    for loss in (TopKCrossEntropy, SmoothTopKLoss):
        assert loss().state_dict() == torch.nn.CrossEntropyLoss().state_dict() == {}
        module, expected = loss(weight=torch.ones(12)), torch.nn.CrossEntropyLoss(weight=weight)
        assert not list(module.parameters())
        module.load_state_dict(expected.state_dict())
        assert torch.equal(module.weight, weight)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_casting_the_module_keeps_p_k(dtype):
    """Of .7 + .2 + .1, bfloat16 would make .9985."""
    p_k, logits = [0.7, 0.2, 0.1], LOGITS.double()
    loss = TopKCrossEntropy(p_k)
    expected = loss(logits, LABELS)
    assert loss.to(dtype) is loss
    torch.testing.assert_close(loss(logits, LABELS), expected, rtol=0, atol=0)
    assert loss.p_k.tolist() == p_k


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_p_k_in_16_bits_is_taken_for_what_it_rounds(dtype):
    p_k = torch.tensor([0.7, 0.2, 0.1], dtype=dtype)
    loss = topk_cross_entropy(LOGITS, LABELS, p_k=p_k)
    torch.testing.assert_close(loss, topk_cross_entropy(LOGITS, LABELS, p_k=[0.7, 0.2, 0.1]), rtol=0.01, atol=0)
    torch.testing.assert_close(TopKCrossEntropy(p_k).p_k.sum(), torch.tensor(1.0))


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_certain_answer_never_costs_less_than_nothing(method):
    """Not even where p_k sums to a little more than 1, where -log 1.00005 is below 0; the gradient goes on."""
    logits = (30 * torch.eye(12)[:2] + torch.linspace(0, 1, 12)).requires_grad_()
    options = {"method": method, "distribution": "logistic", "p_k": [0.5, 0.50005], "reduction": "none"}
    losses = topk_cross_entropy(logits, torch.tensor([0, 1]), **options)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert (losses >= 0).all()
    assert (gradient != 0).any() or method in WITH_A_MARGIN


def test_follows_the_logits_to_their_device():
    loss = TopKCrossEntropy(weight=torch.ones(12))
    value = loss(LOGITS.to("meta"), LABELS.to("meta"))
    assert value.device.type == "meta"
    assert loss.to("meta")(LOGITS.to("meta"), LABELS.to("meta")).shape == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(method, dtype):
    """The head's product is in 16 bits, the loss of its rounded logits in float32."""
    head = torch.nn.Linear(12, 12)
    with torch.autocast("cpu", dtype=dtype):
        logits = head(LOGITS)
        loss = topk_cross_entropy(logits, LABELS, method=method)
    assert logits.dtype == dtype
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, topk_cross_entropy(logits.float(), LABELS, method=method))
    loss.backward()
    assert head.weight.grad.isfinite().all()


@pytest.mark.parametrize(("dtype", "result"), [(torch.float64, torch.float64), (torch.bfloat16, torch.float32)])
def test_type_of_the_loss(dtype, result):
    for reduction in ("none", "mean"):
        assert topk_cross_entropy(LOGITS.to(dtype), LABELS, reduction=reduction).dtype == result


def test_deterministic():
    logits = torch.zeros(64, 50)  # equal scores everywhere
    labels = torch.arange(64) % 50
    torch.use_deterministic_algorithms(True)
    try:
        grads = []
        for _ in range(2):
            x = logits.clone().requires_grad_()
            topk_cross_entropy(x, labels, method="splitter_selection").backward()
            grads.append(x.grad)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(*grads)


def test_implementation_says_which():
    assert implementation("auto", LOGITS) == "torch"
    assert implementation("torch", LOGITS) == "torch"
    with pytest.raises(ValueError, match="impl: 'triton' found, but .*; expected impl='torch' or 'auto'"):
        implementation("triton", LOGITS.double())


def test_asking_for_what_cannot_run_is_an_error():
    with pytest.raises(ValueError, match="impl: 'triton' found"):
        topk_cross_entropy(LOGITS.double(), LABELS, impl="triton")


def test_class_weights_are_given_by_keyword():
    """As the second argument they would be, of torch.nn.functional.cross_entropy."""
    expected = (
        "TopKCrossEntropy: too many positional arguments, expected p_k, method, m, inverse_temperature; .* weight, "
    )
    with pytest.raises(TypeError, match=expected):
        TopKCrossEntropy([0.5, 0.5], "lapsum", 16, 0.25, torch.ones(3))
    with pytest.raises(TypeError, match="topk_cross_entropy: too many positional arguments, expected logits, labels; "):
        topk_cross_entropy(LOGITS, LABELS, torch.ones(3))


def test_description_has_every_option():
    loss = TopKCrossEntropy(p_k=[0.5, 0.5], method="odd_even", m=7)
    text = repr(loss)
    for option in ("p_k=[0.5, 0.5]", "method='odd_even'", "m=7", "distribution='logistic_phi'", "top1_mode='smce'"):
        assert option in text
    for option in ("softmax_over='candidates'", "art_lambda=0.5", "floor=0.0", "reduction='mean'", "ignore_index=-100"):
        assert option in text


def test_published_settings_are_the_defaults():
    """The inverse temperatures with which the authors trained heads on ImageNet."""
    assert TopKCrossEntropy(method="neuralsort").inverse_temperature == 0.5
    assert TopKCrossEntropy(method="softsort").inverse_temperature == 0.5
    assert default_inverse_temperature("bitonic", "logistic", 16) == 0.5
    assert default_inverse_temperature("splitter_selection", "logistic_phi", 16) == 1.0

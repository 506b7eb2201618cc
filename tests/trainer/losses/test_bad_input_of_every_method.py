"""What no method takes, whatever its formula, and what each does with the least and most that it takes."""

import pytest
import torch
from loss_messages import LABELS, LOGITS, NAN, assert_message

from headsmith.trainer.loss_defaults import FUSED, options_read
from headsmith.trainer.losses import METHODS, TopKCrossEntropy, implementation, topk_cross_entropy

every_method = pytest.mark.parametrize("method", METHODS)
OF_RANKS = [method for method in METHODS if "p_k" in options_read(method)]
WITH_A_TEMPERATURE = [method for method in METHODS if "inverse_temperature" in options_read(method)]
NOISY = [method for method in METHODS if "samples" in options_read(method)]
EQUAL = [0.2] * 5


def assert_refused(parts, **options):
    for build in (lambda: TopKCrossEntropy(**options), lambda: topk_cross_entropy(LOGITS, LABELS, **options)):
        with pytest.raises(ValueError) as excinfo:
            build()
        assert_message(excinfo, *parts)


@every_method
@pytest.mark.parametrize("value", [0, 0.0, -1.0, NAN, torch.inf, 1e-300, 1e38])
def test_a_temperature_out_of_range(method, value):
    """1e38 is a number in float32 whose product with a score may be none."""
    assert_refused([f"inverse_temperature: {value} found", "above 0"], method=method, inverse_temperature=value)


@pytest.mark.parametrize("method", WITH_A_TEMPERATURE)
@pytest.mark.parametrize("value", [1e-30, 1e-4, 1e4, 1e9, 1e30])
@pytest.mark.parametrize("top1_mode", ["smce", "sort"])
def test_any_other_temperature_has_a_loss_and_a_gradient(method, value, top1_mode):
    logits = (100 * LOGITS).requires_grad_()
    loss = topk_cross_entropy(logits, LABELS, method=method, inverse_temperature=value, p_k=EQUAL, top1_mode=top1_mode)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("method", OF_RANKS)
def test_fewer_candidates_than_ranks(method):
    assert_refused(["p_k: 3 entries found, but m is 2; expected m of at least 3"], method=method, p_k=[0, 0, 1], m=2)
    assert_refused(["p_k: 5 entries found, but m is 4; expected m of at least 5"], method=method, m=4)


@every_method
@pytest.mark.parametrize("m", [16, None])
def test_fewer_classes_or_candidates_than_ranks_of_a_row(method, m):
    ranks = [[1 / 8] * 8] * 4
    with pytest.raises(ValueError) as excinfo:
        topk_cross_entropy(LOGITS, LABELS, method=method, sample_p_k=ranks, m=m)
    assert_message(excinfo, "sample_p_k: 8 entries found for 7 classes, expected at most 7")
    if method in OF_RANKS:
        with pytest.raises(ValueError) as excinfo:
            topk_cross_entropy(LOGITS, LABELS, method=method, p_k=ranks[0], m=m)
        assert_message(excinfo, "p_k: 8 entries found for 7 classes, expected at most 7")


@every_method
@pytest.mark.parametrize(
    ("p_k", "found"), [([0.5, -0.5, 1], "-0.5"), ([NAN, 1], "nan"), ([0.5, 0.2], "0.7"), ([], "0")]
)
def test_weights_that_are_no_distribution(method, p_k, found):
    assert_refused(["p_k", found], method=method, p_k=p_k)


def test_plain_cross_entropy_has_no_weight_beyond_top_1():
    for p_k in ([0.5, 0.5], [0, 1], [1, 0]):
        assert_refused(
            ["p_k: 2 entries found, but method 'softmax' knows top-1 only", "[1]"], method="softmax", p_k=p_k
        )


@pytest.mark.parametrize("method", NOISY)
@pytest.mark.parametrize("samples", [0, -1, 2.5, None, True, 1_000_001])
def test_without_samples(method, samples):
    assert_refused([f"samples: {samples} found, expected a whole number in 1..1000000"], method=method, samples=samples)


@pytest.mark.parametrize("method", NOISY)
@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_a_noise_seed_that_is_none(method, seed):
    assert_refused([f"noise_seed: {seed} found, expected a whole number of at least 0"], method=method, noise_seed=seed)


@every_method
def test_float64_is_for_plain_torch(method):
    logits = LOGITS.double()
    assert implementation("auto", logits, 7, method) == "torch"
    loss = topk_cross_entropy(logits, LABELS, method=method)
    assert loss.dtype == torch.float64
    torch.testing.assert_close(loss.float(), topk_cross_entropy(LOGITS, LABELS, method=method), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in FUSED])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_no_kernel(method, dtype):
    said = [f"impl: 'triton' found, but method '{method}' has no kernel; expected impl='torch' or 'auto'"]
    with pytest.raises(ValueError) as excinfo:
        implementation("triton", LOGITS.to(dtype), 7, method)
    assert_message(excinfo, *said)
    with pytest.raises(ValueError) as excinfo:
        topk_cross_entropy(LOGITS.to(dtype), LABELS, method=method, impl="triton")
    assert_message(excinfo, *said)

"""The product of features and weights, against numpy's einsum and, on a GPU, against float64."""

import numpy as np
import pytest
import torch

from headsmith.models.heads import affine

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="mixed precision needs a CUDA device")
SHAPES = [((6, 4), (3, 4)), ((6, 4), (2, 3, 4)), ((2, 6, 4), (2, 3, 4)), ((251, 507), (5, 13, 507))]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("features", "weight"), SHAPES)
def test_it_is_the_product(features, weight, biased):
    generator = np.random.default_rng(0)
    x, w, b = (generator.normal(size=shape) for shape in (features, weight, weight[:-1]))
    found = affine(*map(torch.from_numpy, (x, w)), torch.from_numpy(b) if biased else None)
    expected = np.einsum("...nd,...cd->...nc", x, w) + (b[..., None, :] if biased else 0)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12, rtol=1e-12)
    assert found.is_contiguous()


@pytest.mark.parametrize(("features", "weight"), SHAPES[:3])
def test_gradients(features, weight):
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in (features, weight, weight[:-1])]
    assert torch.autograd.gradcheck(affine, inputs)


def test_half_features_on_a_cpu_take_the_dtype_of_the_weights():
    features, weight = torch.randn(3, 4).half(), torch.randn(2, 4)
    assert torch.equal(affine(features, weight), features.float() @ weight.T)


@cuda
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # torch's backward thread opens its context itself
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("features", "weight"), SHAPES)
def test_mixed_precision(features, weight, biased, dtype):
    torch.manual_seed(0)
    x = torch.randn(features, device="cuda").to(dtype)
    w = torch.randn(weight, device="cuda").to(dtype).float()
    b = torch.randn(weight[:-1], device="cuda").to(dtype).float() if biased else None
    mixed = [None if part is None else part.clone().requires_grad_() for part in (x, w, b)]
    exact = [None if part is None else part.double().requires_grad_() for part in (x, w, b)]
    logits, expected = affine(*mixed), affine(*exact)
    assert logits.dtype == dtype
    assert logits.is_contiguous()
    largest = float(expected.detach().abs().max())
    tolerance = {"atol": 4 * torch.finfo(dtype).eps * largest, "rtol": 0.0, "check_dtype": False}
    torch.testing.assert_close(logits, expected, **tolerance)
    gradient = torch.randn_like(logits)
    logits.backward(gradient)
    expected.backward(gradient.double())
    for found, reference in zip(mixed, exact, strict=True):
        if found is None:
            continue
        half = found.dtype == dtype
        error = 4 * torch.finfo(dtype).eps if half else 1e-5
        scale = float(reference.grad.abs().max())
        torch.testing.assert_close(found.grad, reference.grad, atol=error * scale, rtol=0, check_dtype=False)
        assert half or found.grad.dtype == torch.float32

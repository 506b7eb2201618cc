"""The kernels against plain torch, run by `test_kernels.py` in a process of its own under Triton's interpreter."""

import pytest
import torch

from headsmith.trainer.loss_defaults import FUSED, NETWORKS
from headsmith.trainer.losses import DISTRIBUTIONS, implementation, topk_cross_entropy
from headsmith.trainer.losses.kernels import run_kernels

pytestmark = pytest.mark.filterwarnings(  # numpy, in lanes that are masked
    "ignore:(overflow|invalid value|divide by zero|All-NaN slice) encountered:RuntimeWarning"
)
RELAXATIONS = [{"method": method} for method in FUSED if method not in NETWORKS] + [
    {"method": NETWORKS[i % 3], "distribution": distribution} for i, distribution in enumerate(DISTRIBUTIONS)
]
every_relaxation = pytest.mark.parametrize("options", RELAXATIONS, ids=lambda options: "-".join(options.values()))


def p_k_of(options) -> list[float]:
    return [1.0] if options["method"] == "softmax" else [0.5, 0.2, 0.3]


def batch(rows: int, classes: int, dtype=torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct scores, the same in every type, with labels high and low."""
    generator = torch.Generator().manual_seed(classes)
    order = torch.stack([torch.randperm(classes, generator=generator) for _ in range(rows)])
    logits = (order / 16 if classes < 200 else order % 256 / 16).to(dtype)
    labels = torch.randint(classes, (rows,), generator=generator)
    labels[0] = logits[0].argmax()
    return logits, labels


def one_row(rows: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The last of a batch, for what costs many operators of the interpreter a row."""
    logits, labels = batch(rows, classes)
    return logits[-1:], labels[-1:]


def with_gradient(logits, labels, impl, **options):
    x = logits.detach().requires_grad_()
    loss = topk_cross_entropy(x, labels, impl=impl, **options)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    return loss.detach(), gradient


def assert_same(logits, labels, rtol=2e-4, **options):
    loss, gradient = with_gradient(logits, labels, "triton", **options)
    expected_loss, expected_gradient = with_gradient(logits, labels, "torch", **options)
    assert gradient.dtype == logits.dtype
    torch.testing.assert_close(loss, expected_loss, rtol=rtol, atol=1e-5, equal_nan=True)
    rounding = torch.finfo(logits.dtype).eps
    size = expected_gradient.nan_to_num().abs().max().item() if len(logits) else 0
    torch.testing.assert_close(
        gradient, expected_gradient, rtol=max(rtol, 2 * rounding), atol=1e-5 + (rtol + rounding) * size, equal_nan=True
    )


def test_interpreter_runs():
    assert implementation("triton", torch.zeros(1, 5)) == "triton"


@every_relaxation
@pytest.mark.parametrize(("top1_mode", "m"), [("sm", 5), ("smce", 6), ("sort", 7)])
def test_relaxations(options, top1_mode, m):
    assert_same(  # at a tolerance of 1e-6 rounding decides when Sinkhorn stops
        *batch(2, 37), p_k=p_k_of(options), m=m, top1_mode=top1_mode, sinkhorn_tolerance=1e-5, **options
    )


@pytest.mark.parametrize("method", [method for method in FUSED if method != "softmax"])
def test_softmax_over_classes_and_wide_relaxation(method):
    assert_same(
        *one_row(2, 67), p_k=[0.5, 0, 0, 0, 0.5], m=33, method=method, softmax_over="classes", sinkhorn_iterations=4
    )


@pytest.mark.parametrize("method", FUSED)
@pytest.mark.parametrize("classes", [2, 130])
def test_numbers_of_classes(method, classes):
    p_k = [1.0] if method == "softmax" else [0.5, 0.5]
    assert_same(*batch(2, classes), p_k=p_k, m=6, method=method)


def test_more_classes_than_a_tile():
    logits, labels = batch(2, 5003)
    logits += torch.linspace(0, 0.01, 5003)  # no ties
    assert_same(logits, labels, p_k=[0.5, 0.5], m=6)
    assert_same(logits, labels, method="softmax")


@pytest.mark.parametrize("method", ["neuralsort", "splitter_selection", "softmax", "lapsum"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits(method, dtype):
    p_k = [1.0] if method == "softmax" else [0.5, 0.5]
    assert_same(*batch(3, 45, dtype), p_k=p_k, m=6, method=method)


@pytest.mark.parametrize("method", ["softsort", "softmax"])
def test_views(method):
    logits, labels = batch(3, 60)
    p_k = [1.0] if method == "softmax" else [0.5, 0.5]
    for view in (logits[:, 3:50], logits[:, ::2], logits[::2], logits[:1].expand(2, -1), logits.t().contiguous().t()):
        assert_same(view, labels[: len(view)] % view.shape[1], p_k=p_k, m=6, method=method)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("method", ["neuralsort", "softmax"])
def test_nan_and_ignored_rows(method, reduction):
    logits, labels = batch(3, 21)
    options = {"p_k": [1.0] if method == "softmax" else [0.5, 0.5], "m": 6, "method": method, "reduction": reduction}
    labels[1] = -100
    logits[1, 3] = torch.nan
    assert_same(logits, labels, **options)
    logits[2, 20] = torch.nan
    assert_same(logits, labels, **options)
    loss, _ = with_gradient(logits, labels, "triton", **options)
    assert loss.isnan().tolist() == ([False, False, True] if reduction == "none" else True)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_all_ignored_and_empty(reduction):
    logits, _ = batch(3, 21)
    for rows in (3, 0):
        labels = torch.full((rows,), -100)
        loss, gradient = with_gradient(logits[:rows], labels, "triton", reduction=reduction)
        assert loss.shape == ((rows,) if reduction == "none" else ())
        assert (loss == 0).all()
        assert (gradient == 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"weight": torch.linspace(1, 2, 21)},
        {"p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]] * 7},
        {"sample_p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.25, 0.75]]},
        {"sample_p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.25, 0.75]], "method": "lapsum"},
        {"floor": 1e-7, "p_k": [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.3, 0.0, 0.7]] * 7, "method": "dftopk"},
        {"p_k": [0.0] * 5 + [1.0], "method": "lapsum", "top1_mode": "sort", "inverse_temperature": 40.0},
        {"label_smoothing": 0.1},
        {"floor": 1e-7, "p_k": [0.0, 1.0]},
        {"softsort_power": 2.0, "method": "softsort"},
        {"art_lambda": 0.0, "method": "odd_even"},
        {"method": "softmax", "weight": torch.linspace(1, 2, 21)},
    ],
    ids="-".join,
)
def test_options(options):
    assert_same(*batch(4, 21), **({"m": 6} | options))


@every_relaxation
def test_equal_huge_and_distant_scores(options):
    far = torch.zeros(1, 20)
    far[0, 3] = -30
    rows = [torch.zeros(1, 20), far, 1e4 * torch.linspace(-1, 1, 20)[None]]
    for logits in rows:
        options = options | {"p_k": p_k_of(options), "m": 6}
        loss, gradient = with_gradient(logits, torch.tensor([3]), "triton", **options)
        assert loss.isfinite().all()
        assert gradient.isfinite().all()
        expected_loss, expected = with_gradient(logits, torch.tensor([3]), "torch", **options)
        torch.testing.assert_close(loss, expected_loss, rtol=1e-3, atol=1e-4)
        if logits.abs().max() <= 30:  # which of equal scores are candidates is free
            size = expected.abs().max().item()
            torch.testing.assert_close(gradient.sort().values, expected.sort().values, rtol=1e-3, atol=1e-3 * size)


@pytest.mark.parametrize("method", NETWORKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_rows_a_program(monkeypatch, method, dtype):
    monkeypatch.setattr(run_kernels, "PAIRED_ROWS", 1)
    logits, labels = batch(5, 37, dtype)
    labels[1] = -100
    logits[2, 3] = torch.nan
    sample_p_k = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.25, 0.75], [0.5, 0.5]])
    assert_same(logits, labels, sample_p_k=sample_p_k, m=6, method=method, reduction="none")


@pytest.mark.parametrize("method", NETWORKS)
def test_most_layers_in_registers(method):
    assert_same(*one_row(2, 37), p_k=[0.25] * 4, m=16, method=method)


MASKED = [{"method": method, "softmax_over": "candidates"} for method in FUSED] + [
    {"method": method, "softmax_over": "classes"} for method in ("softsort", "splitter_selection")
]


@pytest.mark.parametrize("options", MASKED, ids=lambda options: "-".join(options.values()))
def test_masked_classes(options):
    """The softmax over all classes does not see which relaxation stands beside it."""
    logits, labels = batch(3, 21)
    logits[:, 6:] = -torch.inf
    options = options | {"p_k": p_k_of(options), "m": 9, "reduction": "none"}
    assert_same(logits, labels % 6, **options)
    logits[1, 2:] = -torch.inf  # fewer classes than ranks
    loss, gradient = with_gradient(logits, torch.tensor([0, 1, 7]), "triton", **options)
    assert loss.isinf().tolist() == [False, False, True]
    assert (gradient[logits.isinf()] == 0).all()


@pytest.mark.parametrize(
    ("method", "m"),
    [*((method, 6) for method in (*NETWORKS, "sinkhorn")), ("splitter_selection", None), ("sinkhorn", None)],
)
def test_rows_with_masks_of_their_own(monkeypatch, method, m):
    """As without the masked columns: plain torch on each row alone, of which only the finite scores are given.

    All networks are read from one table; 6 wires stay in registers, 19 go through scratch memory.
    """
    monkeypatch.setattr(run_kernels, "PAIRED_ROWS", 1)
    logits, _ = batch(5, 19)
    for row, left in enumerate([1, 2, 3, 5, 18]):
        logits[row, logits[row].argsort()[: 19 - left]] = -torch.inf
    labels = logits.argsort(descending=True)[:, 0].clone()
    labels[3] = logits[3].argsort(descending=True)[2]
    options = {"method": method, "m": m, "reduction": "none", "top1_mode": "sort", "sinkhorn_iterations": 3}
    p_k = [0.0, 0.0, 1.0]
    loss, gradient = with_gradient(logits, labels, "triton", p_k=p_k, **options)
    for row in range(2, 5):
        kept = logits[row].isfinite()
        alone = logits[row : row + 1, kept]
        at = kept[: labels[row]].sum()[None]
        expected_loss, expected = with_gradient(alone, at, "torch", p_k=p_k, **options)
        torch.testing.assert_close(loss[row : row + 1], expected_loss, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(gradient[row, kept], expected[0], rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(loss[:2], torch.zeros(2), rtol=0, atol=1e-5)
    assert (gradient[logits.isinf()] == 0).all()


def test_gradient_twice():
    logits, labels = batch(3, 37)
    logits.requires_grad_()
    loss = topk_cross_entropy(logits, labels, impl="triton", m=6)
    (first,) = torch.autograd.grad(loss, logits, torch.tensor(2.0), retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(first, kept, rtol=0, atol=0)
    torch.testing.assert_close(first, 2 * second)


@pytest.mark.parametrize("softmax_over", ["candidates", "classes"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradient_in_place(softmax_over, dtype):
    logits, labels = batch(3, 37, dtype)
    options = {"p_k": [0.5, 0.5], "m": 6, "softmax_over": softmax_over}
    _, expected = with_gradient(logits, labels, "triton", **options)
    _, gradient = with_gradient(logits.clone(), labels, "triton", inplace=True, **options)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=0)

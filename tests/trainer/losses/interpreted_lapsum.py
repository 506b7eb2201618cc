"""LapSum's kernel of all classes against plain torch, run by `test_kernels.py` under Triton's interpreter."""

import pytest
import torch
from interpreted_kernels import assert_same, batch, with_gradient

from headsmith.trainer.losses import TopKCrossEntropy, implementation
from headsmith.trainer.losses.kernels import run_lapsum_of_all

ALL = {"method": "lapsum", "m": None}
CLASSES = 150
P_K = [0.3, 0.0, 0.3, 0.4]


@pytest.fixture(params=["one tile", "tiles"])
def tiles(request, monkeypatch):
    if request.param == "tiles":
        monkeypatch.setattr(run_lapsum_of_all, "WIDEST", 64)
        monkeypatch.setattr(run_lapsum_of_all, "GRADIENTS", 32)


@pytest.mark.parametrize("top1_mode", ["sort", "sm", "smce"])
@pytest.mark.parametrize("inverse_temperature", [0.05, 2.0, 50.0])
def test_modes_and_temperatures(tiles, top1_mode, inverse_temperature):
    options = {"p_k": P_K, "top1_mode": top1_mode, "inverse_temperature": inverse_temperature, "reduction": "sum"}
    assert_same(*batch(2, CLASSES), **options, **ALL)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("classes", [131, 136])
def test_16_bits_and_widths(dtype, classes):
    """Rows that vector loads fit, and rows that they do not."""
    assert_same(*batch(3, classes, dtype), p_k=P_K, inverse_temperature=1.0, **ALL)


@pytest.mark.parametrize(
    "options",
    [
        {"weight": torch.linspace(1, 2, CLASSES)},
        {"p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]] * 50},
        {"sample_p_k": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.25, 0.75]]},
        {"softmax_over": "classes", "floor": 1e-7, "p_k": P_K},
        {"p_k": [0.0] * 99 + [1.0], "top1_mode": "sort", "inverse_temperature": 4.0},
        {"p_k": [1.0]},
        {"reduction": "none", "inverse_temperature": 8.0},
        {"label_smoothing": 0.1},
    ],
    ids="-".join,
)
def test_options(options):
    assert_same(*batch(4, CLASSES), **(ALL | options))


def test_views():
    logits, labels = batch(3, 300)
    for view in (logits[:, 3:150], logits[:, ::2], logits[:1].expand(2, -1)):
        assert_same(view, labels[: len(view)] % view.shape[1], p_k=P_K, **ALL)


@pytest.mark.parametrize("top1_mode", ["sort", "smce"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_masked_ignored_and_nan(tiles, top1_mode, reduction):
    logits, labels = batch(5, CLASSES)
    options = ALL | {"p_k": P_K, "top1_mode": top1_mode, "reduction": reduction, "inverse_temperature": 1.0}
    logits[0, logits[0].argsort()[:-2]] = -torch.inf  # fewer classes than ranks
    labels[0] = logits[0].argmax()
    logits[1, :100], labels[1] = -torch.inf, 149
    labels[2], logits[2, 7] = -100, torch.nan
    assert_same(logits, labels, **options)
    logits[3, 140], logits[4, 1], labels[4] = torch.nan, -torch.inf, 1
    loss, gradient = with_gradient(logits, labels, "triton", **(options | {"reduction": "none"}))
    assert loss.isnan().tolist() == [False, False, False, True, False]
    assert loss.isinf().tolist() == [False, False, False, False, True]
    assert gradient.isnan().any(dim=1).tolist() == [False, False, False, True, False]
    assert (gradient[[0, 1, 4]][logits[[0, 1, 4]].isinf()] == 0).all()
    assert (gradient[[2, 4]] == 0).all()


def test_equal_distant_and_far_scores(tiles):
    """Nothing is left of the farther scores' exponentials in 32 bits."""
    far = torch.zeros(1, CLASSES)
    far[0, 3] = -900
    steps = -300.0 * torch.arange(CLASSES)[None]
    for logits in (torch.zeros(1, CLASSES), far, -far, steps):
        for label in (0, 3):
            assert_same(
                logits, torch.tensor([label]), p_k=P_K, top1_mode="sort", inverse_temperature=1.0, rtol=1e-3, **ALL
            )


@pytest.mark.parametrize(("classes", "m"), [(7, 16), (CLASSES, None)])
@pytest.mark.parametrize(("temperature", "spread"), [(1e5, 300), (1e7, 3000)])
@pytest.mark.parametrize("ties", [True, False])
def test_scores_at_any_distance(classes, m, temperature, spread, ties):
    """As in 64 bits, where what lies within 1 of a threshold is not lost in a score of 1e10."""
    generator = torch.Generator().manual_seed(classes)
    logits = torch.randn(3, classes, generator=generator) * spread
    logits = (logits / spread).round() * spread if ties else logits
    order = logits.argsort(descending=True)
    labels = torch.tensor([order[0, 0], order[1, 3], order[2, 6]])
    options = {"method": "lapsum", "m": m, "p_k": [0.2] * 5, "top1_mode": "sort", "inverse_temperature": temperature}
    loss, gradient = with_gradient(logits, labels, "triton", reduction="none", **options)
    expected_loss, expected = with_gradient(logits.double(), labels, "torch", reduction="none", **options)
    torch.testing.assert_close(loss.double(), expected_loss, rtol=1e-5, atol=1e-5)
    size = expected.abs().max().item()
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-3, atol=1e-5 * size)


@pytest.mark.parametrize("rows", [3, 0])
def test_all_ignored_and_empty(rows):
    loss, gradient = with_gradient(torch.zeros(rows, CLASSES), torch.full((rows,), -100), "triton", **ALL)
    assert loss == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradient_in_place_and_twice(dtype):
    logits, labels = batch(3, CLASSES, dtype)
    _, expected = with_gradient(logits, labels, "triton", **ALL)
    _, gradient = with_gradient(logits.clone(), labels, "triton", inplace=True, **ALL)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=0)


@pytest.mark.parametrize("options", [{}, {"sample_p_k": [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], "top1_mode": "sort"}])
def test_traced_as_one_graph(options):
    logits, labels = batch(2, CLASSES)
    sample_p_k = options.get("sample_p_k")
    loss_of = TopKCrossEntropy(P_K, impl="triton", top1_mode=options.get("top1_mode", "smce"), **ALL)
    results = []
    torch.compiler.reset()
    for function in (torch.compile(loss_of, fullgraph=True, backend="aot_eager"), loss_of):
        x = logits.clone().requires_grad_()
        loss = function(x, labels, sample_p_k=None if sample_p_k is None else torch.tensor(sample_p_k))
        results.append((loss.detach(), *torch.autograd.grad(loss, x)))
    torch.testing.assert_close(*results)


def test_choice_of_the_implementation():
    assert implementation("triton", torch.zeros(2, 200), m=200, method="lapsum") == "triton"
    for m, method in ((150, "lapsum"), (200, "dftopk")):
        with pytest.raises(ValueError, match=f"there are {m} candidates, and the kernels keep at most 128"):
            implementation("triton", torch.zeros(2, 200), m=m, method=method)

"""Run by test_step_kernels.py under Triton's interpreter.

Two things that a wide step needs exist on a GPU only: its streams, and products that give another type. Stand-ins take
their place here; `test_fit.py` has the same claim for a whole fit on a GPU.
"""

import contextlib
from dataclasses import replace

import pytest
import torch

from headsmith.core.distributed import Processes
from headsmith.models.heads import build_head
from headsmith.trainer import TrainConfig
from headsmith.trainer.criterion import criterion
from headsmith.trainer.fitting import wide_linear
from headsmith.trainer.fitting.fused_optimizer import FusedOptimizer
from headsmith.trainer.fitting.gather_kernel import Programs, fetch_rows
from headsmith.trainer.fitting.head_bank import Bank
from headsmith.trainer.fitting.optimizers import Optimizer
from headsmith.trainer.resolved_settings import resolve

CPU = torch.device("cpu")
ROWS, DIMS = 50, 16
MIXES = [
    ["softmax"],
    ["softmax", "softmax", "neuralsort"],
    ["bitonic", "neuralsort", "softmax"],
    ["bitonic", "neuralsort", "softmax", "softmax", "softsort"],
]


class Stream:
    def __init__(self, *args):
        pass

    def wait_stream(self, other):
        pass


@pytest.fixture
def on_a_cpu(monkeypatch):
    product = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b, out_dtype, out: out.copy_(product(a.float(), b.float())))
    monkeypatch.setattr(wide_linear, "column_sums", lambda slope: slope.float().sum(0))
    for name, stand_in in (("Stream", Stream), ("current_stream", Stream), ("stream", contextlib.nullcontext)):
        monkeypatch.setattr(torch.cuda, name, stand_in)


def made(losses, classes):
    """A bank with weights that half precision holds, and its parameters with the bank's axis first."""
    configs = [
        resolve(
            TrainConfig(loss=loss, m=classes, label_smoothing=0.1 * (loss == "softsort"), device="cpu"),
            classes,
            torch.ones(ROWS, DIMS),
        )
        for loss in losses
    ]
    head = build_head("linear", DIMS, classes, bank=len(losses) if len(losses) > 1 else None)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=torch.Generator().manual_seed(0)).half())
    bank = Bank(head, configs, CPU)
    return bank, [p.detach() if len(losses) > 1 else p.detach()[None] for p in bank.parameters], configs


class Twins:
    """The gradient of two processes with the same rows, each of which reads the other's."""

    def __init__(self, processes, size):
        self.own = torch.full((size,), torch.nan)
        self.begun = False

    def begin(self):
        self.own.fill_(torch.nan)  # whatever was written before this would be overwritten while the other reads it
        self.begun = True

    def finish(self):
        assert self.begun
        self.begun = False
        return [self.own, self.own]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("classes", [10, 16, 50])
@pytest.mark.parametrize("losses", MIXES, ids=" ".join)
def test_a_wide_step_is_that_of_the_heads(losses, classes, count, on_a_cpu, monkeypatch):
    if count == 2:
        monkeypatch.setattr(wide_linear, "gradient_of", Twins)
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(ROWS, DIMS, generator=generator).half()
    labels = torch.randint(classes, (ROWS,), generator=generator)
    bank, parameters, configs = made(losses, classes)
    optimizer = FusedOptimizer(parameters, configs, [1.0])
    wide = wide_linear.WideLinear(bank, optimizer, Processes(CPU), torch.float16)
    optimizer.start(0, 1)
    found = wide.step(features, labels, 0, ROWS * count)

    peer, parameters, _ = made(losses, classes)
    expected = Optimizer(parameters, configs, [1.0])
    expected.start(0, 1)
    logits = peer.logits(features.float())
    slope, losses_by_group = peer.gradient(logits, labels, 1 / ROWS)
    gradients = torch.autograd.grad(logits, peer.parameters, slope)
    expected.step([g.view(p.shape) for g, p in zip(gradients, parameters, strict=True)], 0, 1.0)

    for ours, theirs in zip(found, losses_by_group, strict=True):
        torch.testing.assert_close(ours, theirs, atol=0.03, rtol=0.01)
    for name, moments in expected.state.items():
        for ours, theirs in zip(optimizer.state[name], moments, strict=True):
            assert (ours - theirs).abs().max() < 0.02 * theirs.abs().max()
    for copy, parameter in zip(optimizer.rounded, optimizer.parameters, strict=True):
        assert torch.equal(copy[:, :classes], parameter.half())
        assert not copy[:, classes:].any()


@pytest.mark.parametrize("loss", ["softmax", "neuralsort", "softsort"])
def test_wide_steps_are_those_of_a_loop_that_rounds_to_half_precision(loss, on_a_cpu):
    classes, steps, generator = 10, 12, torch.Generator().manual_seed(2)
    bank, parameters, configs = made([loss], classes)
    head = torch.nn.Linear(DIMS, classes)
    head.load_state_dict(bank.head.state_dict())
    config = replace(configs[0], optimizer="sgd", learning_rate=0.1)  # Adam makes whole steps of what is only rounding
    plain = torch.optim.SGD(head.parameters(), lr=config.learning_rate, momentum=config.momentum)
    optimizer = FusedOptimizer(parameters, [config], [1.0] * steps)
    wide = wide_linear.WideLinear(bank, optimizer, Processes(CPU), torch.float16)
    for step in range(steps):
        features = torch.randn(ROWS, DIMS, generator=generator).half()
        labels = torch.randint(classes, (ROWS,), generator=generator)
        optimizer.start(step, 1)
        wide.step(features, labels, 0, ROWS)

        weight, bias = (parameter.detach().half().float() for parameter in head.parameters())
        scores = (features.float() @ weight.T + bias).half().float().requires_grad_()
        [slope] = torch.autograd.grad(criterion(config)(scores, labels).sum(), scores)
        slope = slope.half().float()
        head.weight.grad, head.bias.grad = slope.T @ features.float() / ROWS, slope.mean(0)
        plain.step()
    for ours, theirs in zip(parameters, head.parameters(), strict=True):
        torch.testing.assert_close(ours[0], theirs.detach(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("programs", [Programs(3, 1), Programs(2, 4), Programs(64, 2)])
@pytest.mark.parametrize("width", [5, 1024, 1500])
def test_fetched_rows_are_those_that_were_asked_for(width, programs, dtype):
    features, labels = torch.randn(40, width).to(dtype), torch.randint(9, (40,))
    rows = torch.randint(40, (17,))
    out = torch.empty(17, width, dtype=dtype), torch.empty(17, dtype=torch.int64)
    fetch_rows(features, labels, rows, out, programs)
    assert torch.equal(out[0], features[rows])
    assert torch.equal(out[1], labels[rows])

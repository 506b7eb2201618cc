"""Every optimiser against torch.optim; the kernel too, where `test_step_kernels.py` runs this under the interpreter."""

import os
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headsmith.trainer import TrainConfig
from headsmith.trainer.fitting.fused_optimizer import FusedOptimizer
from headsmith.trainer.fitting.optimizers import Optimizer, schedule

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
STEPS, SHAPES = 5, ((3, 7, 5), (3, 7))
PEERS = {
    "adam": lambda p, c: torch.optim.Adam(p, lr=c.step_size, weight_decay=c.weight_decay),
    "adamw": lambda p, c: torch.optim.AdamW(p, lr=c.step_size, weight_decay=c.weight_decay),
    "sgd": lambda p, c: torch.optim.SGD(p, lr=c.step_size, weight_decay=c.weight_decay, momentum=c.momentum),
}


def bank(kind: str) -> list[TrainConfig]:
    rates = ((0.01, 0.0), (0.1, 0.03), (0.003, 0.3))
    return [TrainConfig(optimizer=kind, learning_rate=rate, weight_decay=decay) for rate, decay in rates]


def drawn(seed: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]


@pytest.mark.parametrize("kind", PEERS)
def test_steps_are_those_of_torch(kind):
    optimizer = FusedOptimizer if INTERPRETED else Optimizer
    configs = bank(kind)
    factors = [1.0, 0.5, 0.25, 1.0, 0.1]
    ours = optimizer(drawn(0), configs, factors)
    peers = [[torch.nn.Parameter(tensor[head].clone()) for tensor in drawn(0)] for head in range(3)]
    optimizers = [PEERS[kind](own, config) for own, config in zip(peers, configs, strict=True)]
    # A copy may have more classes, which stay.
    copies = [
        torch.nn.functional.pad(tensor.half(), (0, 0) * (tensor.ndim - 2) + (0, 1), value=7.0) for tensor in drawn(0)
    ]
    if INTERPRETED:
        ours.rounded = copies
    for first in (0, 3):
        ours.start(first, min(3, STEPS - first))
        for position in range(min(3, STEPS - first)):
            step = first + position
            ours.step(drawn(step + 1), position, 0.5)
            for head, (own, peer, config) in enumerate(zip(peers, optimizers, configs, strict=True)):
                for parameter, gradient in zip(own, drawn(step + 1), strict=True):
                    parameter.grad = gradient[head] * 0.5
                peer.param_groups[0]["lr"] = config.step_size * factors[step]
                peer.step()
    for index, tensor in enumerate(ours.parameters):
        expected = torch.stack([own[index].detach() for own in peers])
        torch.testing.assert_close(tensor, expected, atol=2e-6, rtol=1e-5)
        assert not INTERPRETED or torch.equal(copies[index][:, :-1], tensor.half())
        assert (copies[index][:, -1] == 7).all()


@given(st.integers(1, 6), st.floats(0, 1), st.integers(1, 9), st.sampled_from(["constant", "cosine"]))
def test_the_schedule_rises_and_falls_within_bounds(epochs, warmup, steps, kind):
    factors = schedule(replace(TrainConfig(), epochs=epochs, warmup=warmup, schedule=kind), steps)
    rising = min(round(warmup * steps), len(factors))
    assert len(factors) == epochs * steps
    assert all(0 < factor <= 1 for factor in factors)
    assert factors[:rising] == sorted(factors[:rising])
    assert factors[rising:] == sorted(factors[rising:], reverse=True)


def test_the_cosine_is_torchs():
    parameter = torch.nn.Parameter(torch.zeros(()))
    peer = torch.optim.SGD([parameter], lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(peer, T_max=12)
    expected = []
    for _ in range(12):
        expected.append(peer.param_groups[0]["lr"])
        peer.step()
        cosine.step()
    assert schedule(TrainConfig(epochs=4, schedule="cosine"), 3) == pytest.approx(expected)

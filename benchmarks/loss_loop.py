"""What a loss costs in a plain loop, launched step by step: `python -m benchmarks.losses --loop`."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from headsmith.trainer.loss_defaults import FUSED
from headsmith.trainer.losses import TopKCrossEntropy

SHAPES = ((512, 1000, torch.float32), (4096, 1000, torch.bfloat16))
FEATURES = 512
STEPS, WARM, RUNS = 300, 30, 5
WAYS = ("eager", "compiled", "whole step")
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LoopRow:
    """A loss in the loop: microseconds a step, and their ratio to `F.cross_entropy`; graph breaks of the whole step."""

    shape: str
    loss: str
    way: str
    microseconds: float
    ratio: float
    graph_breaks: int


def loop_rows(device: str, only: str = "", shapes: str = "") -> Iterator[LoopRow]:
    """Time `F.cross_entropy` and every method that has a kernel.

    Args:
        device: `cuda`, or `cpu`, where plain torch runs in place of the kernels.
        only: methods whose name has this text.
        shapes: shapes whose name has this text.
    """
    for rows, classes, dtype in SHAPES:
        shape = f"{rows} x {classes} {str(dtype).removeprefix('torch.')}"
        if shapes not in shape:
            continue
        losses: dict[str, Loss] = {"F.cross_entropy": nn.CrossEntropyLoss()}
        losses |= {method: _ours(method).to(device) for method in FUSED if only in method}
        for way in WAYS:
            floor = 0.0
            for name, loss in losses.items():
                torch.compiler.reset()
                counters.clear()
                microseconds = _time(_step(way, loss, rows, classes, dtype, device), device)
                floor = floor or microseconds
                breaks = sum(counters["graph_break"].values())
                yield LoopRow(shape, name, way, microseconds, microseconds / floor, breaks)


def _ours(method: str) -> nn.Module:
    p_k = [1.0] if method == "softmax" else [0.5, 0.0, 0.0, 0.0, 0.5]
    return TopKCrossEntropy(p_k, method=method)


def _step(way: str, loss: Loss, rows: int, classes: int, dtype: torch.dtype, device: str) -> Callable[[], None]:
    """One step: loss and gradient by the logits, or a linear head's with its optimiser, compiled as one."""
    generator = torch.Generator(device).manual_seed(0)
    labels = torch.randint(classes, (rows,), device=device, generator=generator)
    if way == "whole step":
        features = torch.randn(rows, FEATURES, device=device, generator=generator).to(dtype)
        head = nn.Linear(FEATURES, classes, device=device, dtype=dtype)
        optimiser = torch.optim.SGD(head.parameters(), lr=1e-3, momentum=0.9)

        @torch.compile
        def whole() -> None:
            optimiser.zero_grad()
            loss(head(features), labels).backward()
            optimiser.step()

        return whole  # type: ignore[no-any-return]
    logits = torch.randn(rows, classes, device=device, generator=generator).mul(3).to(dtype).requires_grad_()
    called = torch.compile(loss, fullgraph=True) if way == "compiled" else loss

    def alone() -> None:
        logits.grad = None
        called(logits, labels).backward()

    return alone


def _time(step: Callable[[], None], device: str) -> float:
    """Microseconds a step, the median of some runs of many steps; the device is waited for once a run."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(WARM):
        step()
    runs = []
    for _ in range(RUNS):
        wait()
        started = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        runs.append((time.perf_counter() - started) / STEPS * 1e6)
    return statistics.median(runs)

"""What a loss costs in a plain loop, launched step by step: `python -m benchmarks.losses --loop`."""

import itertools
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
STEPS, WARM, RUNS = 300, 30, 7
WAYS = ("eager", "compiled", "whole step")
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LoopRow:
    """A loss in the loop beside `F.cross_entropy`: microseconds a step, their ratio, graph breaks of both."""

    shape: str
    loss: str
    way: str
    microseconds: float
    cross_entropy: float
    ratio: float
    graph_breaks: int


def loop_rows(device: str, only: str = "", shapes: str = "", ways: str = "") -> Iterator[LoopRow]:
    """Time every method that has a kernel, in turns with `F.cross_entropy`, so that other load slows down both.

    Args:
        device: `cuda`, or `cpu`, where plain torch runs in place of the kernels.
        only: methods whose name has this text.
        shapes: shapes whose name has this text.
        ways: ways whose name has this text.
    """
    for rows, classes, dtype in SHAPES:
        shape = f"{rows} x {classes} {str(dtype).removeprefix('torch.')}"
        methods = [method for method in FUSED if only in method] if shapes in shape else []
        for way, method in itertools.product([way for way in WAYS if ways in way], methods):
            torch.compiler.reset()
            counters.clear()
            losses: dict[str, Loss] = {"F.cross_entropy": nn.CrossEntropyLoss(), method: _ours(method).to(device)}
            steps = [_step(way, loss, rows, classes, dtype, device) for loss in losses.values()]
            theirs, ours = _times(steps, device)
            ratio = statistics.median(b / a for a, b in zip(theirs, ours, strict=True))
            breaks = sum(counters["graph_break"].values())
            medians = statistics.median(ours), statistics.median(theirs)
            yield LoopRow(shape, method, way, *medians, ratio, breaks)


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

        def whole() -> None:
            optimiser.zero_grad()
            loss(head(features), labels).backward()
            optimiser.step()

        # Code of its own: compiled graphs are kept by code, and each is tried before the next.
        whole.__code__ = whole.__code__.replace(co_name=f"whole_{type(loss).__name__}")
        return torch.compile(whole)  # type: ignore[no-any-return]
    logits = torch.randn(rows, classes, device=device, generator=generator).mul(3).to(dtype).requires_grad_()
    called = torch.compile(loss, fullgraph=True) if way == "compiled" else loss

    def alone() -> None:
        logits.grad = None
        called(logits, labels).backward()

    return alone


def _times(steps: list[Callable[[], None]], device: str) -> list[list[float]]:
    """Microseconds a step in runs of many steps, of each in turn; the device is waited for once a run."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for step in steps:
        for _ in range(WARM):
            step()
    runs: list[list[float]] = [[] for _ in steps]
    for _ in range(RUNS):
        for step, times in zip(steps, runs, strict=True):
            wait()
            started = time.perf_counter()
            for _ in range(STEPS):
                step()
            wait()
            times.append((time.perf_counter() - started) / STEPS * 1e6)
    return runs

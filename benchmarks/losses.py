"""Time and memory of every loss, beside its peers and the floors: python -m benchmarks.losses."""

import argparse
import contextlib
import datetime
import importlib.util
import io
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from headsmith.trainer.loss_defaults import FUSED
from headsmith.trainer.losses import METHODS, topk_cross_entropy

from .linear_head import linear_rows
from .loss_loop import LoopRow, loop_rows
from .timing import Step, Timing, time_cpu, time_eager, time_graph

L2_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Shape:
    """A batch of logits and the candidates of a row."""

    rows: int
    classes: int
    dtype: torch.dtype
    m: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.classes} {str(self.dtype).removeprefix('torch.')}, m = {self.m}"


GPU_SHAPES = (
    Shape(512, 1000, torch.float32, 16),
    Shape(512, 1000, torch.float16, 16),
    Shape(4096, 1000, torch.bfloat16, 16),
    Shape(16384, 1000, torch.bfloat16, 16),
    Shape(4096, 10450, torch.bfloat16, 50),
)
CPU_SHAPES = (Shape(512, 1000, torch.float32, 16),)
P_K = [0.5, 0.0, 0.0, 0.0, 0.5]
MODE = "sm"  # difftopk's
RATIOS = (
    ("lapsum", "neuralsort"),
    ("dftopk", "neuralsort"),
    ("lapsum of all classes", "softmax"),
    ("lapsum of all classes", "fused cross-entropy kernel"),
)


class Inputs:
    """Enough copies of logits and labels that no step finds its inputs in the cache."""

    def __init__(self, shape: Shape, device: str) -> None:
        size = shape.rows * shape.classes * torch.finfo(shape.dtype).bits // 8
        self.copies = max(2 * L2_BYTES // size, 2) if device == "cuda" else 2
        generator = torch.Generator(device).manual_seed(0)
        self.labels = [torch.randint(shape.classes, (shape.rows,), device=device, generator=generator) for _ in self]
        self.logits = [
            torch.randn(shape.rows, shape.classes, device=device, generator=generator)
            .mul(3)
            .to(shape.dtype)
            .requires_grad_()
            for _ in self
        ]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.copies))

    def step(self, loss: Callable[[Tensor, Tensor], Tensor]) -> Step:
        """Forward and backward of `loss` on the i-th copy."""

        def run(i: int) -> object:
            return torch.autograd.grad(loss(self.logits[i], self.labels[i]), self.logits[i])

        return run

    def step_in_place(self, method: str, p_k: list[float], m: int | None) -> Step:
        """Losses of rows, and their gradient over copies of the logits: what a step of the training loop does."""
        ones = torch.ones(len(self.labels[0]), device=self.labels[0].device)
        copies: list[Tensor] = []

        def run(i: int) -> object:
            copies.extend(x.detach().clone().requires_grad_() for x in self.logits[len(copies) :])
            options = {"p_k": p_k, "method": method, "m": m, "top1_mode": MODE, "impl": "triton"}
            losses = topk_cross_entropy(copies[i], self.labels[i], reduction="none", inplace=True, **options)
            return torch.autograd.grad(losses, copies[i], ones)

        return run


def peer(method: str, shape: Shape, device: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of the difftopk package with the same settings as ours."""
    with contextlib.redirect_stdout(io.StringIO()):
        import difftopk

        loss: Callable[[Tensor, Tensor], Tensor] = difftopk.TopKCrossEntropyLoss(
            method,
            1.0 if "sort" not in method else 0.5,
            P_K,
            shape.classes,
            shape.m,
            distribution="logistic_phi",
            art_lambda=0.5,
            device=device,
        )
    return loss


def steps(shape: Shape, inputs: Inputs, device: str) -> Iterator[tuple[str, Step, bool]]:
    """Name, step and whether it can be captured, of every row of the table."""

    def copy(i: int) -> object:
        return inputs.logits[i].detach().clone()

    def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(logits, labels)

    yield "copy of the bytes", copy, True
    if device == "cuda":
        from .fused_cross_entropy import fused_cross_entropy

        yield "fused cross-entropy kernel", lambda i: fused_cross_entropy(inputs.logits[i], inputs.labels[i]), True
    yield "F.cross_entropy", inputs.step(cross_entropy), False
    if device == "cuda":
        yield "F.cross_entropy, captured", inputs.step(cross_entropy), True
    for impl in ("torch", "triton") if device == "cuda" else ("torch",):
        for name in (*FUSED, "lapsum of all classes") if impl == "triton" else METHODS:
            method, m = name.split()[0], None if name.endswith("of all classes") else shape.m
            p_k = [1.0] if method == "softmax" else P_K

            ours = partial(topk_cross_entropy, p_k=p_k, method=method, m=m, top1_mode=MODE, impl=impl)
            yield f"ours, {impl}, {name}", inputs.step(ours), impl == "triton"
            if impl == "triton" and method == "neuralsort":
                yield "ours, triton, neuralsort, not captured", inputs.step(ours), False
            if impl == "triton" and shape.dtype != torch.float32:
                yield f"ours, triton, {name}, rows in place", inputs.step_in_place(method, p_k, m), True
    if importlib.util.find_spec("difftopk") is None:
        return
    wide = inputs.logits[0].detach().float().requires_grad_()
    for method in ("neuralsort", "softsort", "bitonic__non_sparse", "odd_even"):
        loss = peer(method, shape, device)

        def theirs(i: int, loss: Callable[[Tensor, Tensor], Tensor] = loss) -> object:
            return torch.autograd.grad(loss(wide, inputs.labels[0]), wide)

        yield f"difftopk, {method.removesuffix('__non_sparse')} (float32)", theirs, False


def measure(step: Step, inputs: Inputs, device: str, captured: bool) -> Timing:
    """Time a step the way that its device and its launches allow."""
    if device == "cpu":
        return time_cpu(step, inputs.copies)
    return time_graph(step, inputs.copies) if captured else time_eager(step, inputs.copies)


def environment(device: str) -> dict[str, str]:
    """What the numbers hold for."""
    import importlib.metadata

    found = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "torch": torch.__version__}
    for name in ("triton", "difftopk"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    if device == "cuda":
        return found | {"device": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda)}
    return found | {"device": f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"}


def _show_loop(rows: Iterator[LoopRow]) -> Iterator[LoopRow]:
    print("loss(logits, labels).backward(), microseconds a step, in turns with F.cross_entropy\n")
    print(f"| {'shape':20} | {'way':10} | {'loss':20} | {'us':>7} | F.cross_entropy | ratio | graph breaks |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        numbers = f"{row.microseconds:7.0f} | {row.cross_entropy:15.0f} | {row.ratio:5.2f} | {row.graph_breaks:12}"
        print(f"| {row.shape:20} | {row.way:10} | {row.loss:20} | {numbers} |", flush=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--only", default="", help="measure only rows whose name has this text")
    parser.add_argument("--shapes", default="", help="measure only shapes whose name has this text")
    parser.add_argument("--loop", action="store_true", help="measure the losses in a plain loop instead")
    parser.add_argument("--ways", default="", help="of the loop, measure only ways whose name has this text")
    parser.add_argument("--no-linear", action="store_true", help="leave the linear head out")
    parser.add_argument("--json", type=Path, help="write the rows to this file as well")
    arguments = parser.parse_args()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    found = environment(device)
    print(", ".join(f"{key} {value}" for key, value in found.items()))
    if arguments.loop:
        loop = list(_show_loop(loop_rows(device, arguments.only, arguments.shapes, arguments.ways)))
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(row) | found for row in loop], indent=1), encoding="utf-8")
        return
    print("forward + backward of one step, microseconds (p20 / p50 / p80), peak memory of the step in MiB\n")
    print(f"| {'shape':34} | {'loss':38} | {'p20':>9} | {'p50':>9} | {'p80':>9} | {'peak MiB':>9} | launch |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows: list[dict[str, object]] = []

    def show(shape: str, name: str, timing: Timing) -> None:
        numbers = " | ".join(f"{x:9.1f}" for x in (timing.p20, timing.p50, timing.p80, timing.peak_mib))
        print(f"| {shape:34} | {name:38} | {numbers} | {timing.launch} |", flush=True)
        rows.append({"shape": shape, "loss": name, **asdict(timing), **found})

    for shape in GPU_SHAPES if device == "cuda" else CPU_SHAPES:
        if arguments.shapes not in str(shape):
            continue
        inputs = Inputs(shape, device)
        medians = {}
        for name, step, captured in steps(shape, inputs, device):
            if arguments.only in name:
                timing = measure(step, inputs, device, captured)
                show(str(shape), name, timing)
                medians[name.removeprefix("ours, triton, ")] = timing.p50
        for name, other in RATIOS:
            if name in medians and other in medians:
                print(f"{shape}: {name} takes {medians[name] / medians[other]:.2f} x {other}", flush=True)
        del inputs
    if device == "cuda" and not arguments.no_linear:
        for name, timing in linear_rows():
            show("linear 16384 x 2048 -> 21841 bfloat16", name, timing)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

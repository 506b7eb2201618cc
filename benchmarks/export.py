"""Times exports and exported files: to write and prove, to open, and images a second, beside PyTorch and timm's route.

python -m benchmarks.export [--device cpu|cuda] [--networks lite0,resnet50] [--batch-sizes 1,16] [--rounds 15]

All files of a network are timed in turns, so that what else the machine does falls on all of them alike, and each
directly after a run that is not counted: the threads of whoever ran before spin for a while, and take CPUs. Runs of
``resnet50`` have random weights: neither their speed nor their size depends on them.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import timm
import torch
from rich.console import Console
from rich.table import Table
from timm.utils.onnx import onnx_export

from headsmith.core.cpus import default_threads
from headsmith.core.environment import describe_device, versions
from headsmith.demo.glyphs import draw_glyphs
from headsmith.export import export_classifier
from headsmith.models import load_backbone
from headsmith.trainer import Run, extract, train

CLASSES = 12
ONNX, TIMM = "onnx", "timm's onnx_export, bare network"
LOOSE = {"max_drop": 100.0}
EXPORTS: dict[str, dict[str, Any]] = {
    ONNX: {},
    "onnx, uint8-nhwc": {"input_format": "uint8-nhwc"},
    "onnx, fp16": {"precision": "fp16", **LOOSE},
    "onnx, int8": {"precision": "int8", **LOOSE},
    "torchscript": {"formats": ("torchscript",)},
    "pt2": {"formats": ("pt2",)},
    "timm": {"formats": ("timm",)},
}


@dataclass
class Contender:
    """Something that classifies a batch of pixels, uint8 ``(N, H, W, 3)``.

    Attributes:
        what: Its name in the table.
        answer: Called with what ``feed`` makes of the pixels: the part that is timed.
        export_seconds: To write it, and for our files to prove it.
        bytes: Of the file.
        load_seconds: To open it.
        seconds: For a batch, by batch size, one entry a round.
    """

    what: str
    answer: Callable[[Any], object]
    feed: Callable[[np.ndarray], Any]
    export_seconds: float = float("nan")
    bytes: float = float("nan")
    load_seconds: float = float("nan")
    seconds: dict[int, list[float]] = field(default_factory=dict)


def make_run(name: str, root: Path) -> Run:
    """A head of 12 classes on glyphs, at the network's own image size."""
    flags: dict[str, Any] = {"backbone": name}
    if name != "lite0":
        path = root / f"{name}.pth"
        torch.manual_seed(0)
        torch.save(timm.create_model(name).state_dict(), path)
        flags = {"backbone": f"timm:{name}", "checkpoint": path}
    features = extract(draw_glyphs(root / "glyphs", CLASSES), out=root / "features", **flags)
    return train(features, out=root / "run", epochs=20)


def ours(run: Run, root: Path, provider: str) -> Iterator[Contender]:
    """Every export of the run, as `open` gives it."""
    for number, (what, options) in enumerate(EXPORTS.items()):
        start = time.perf_counter()
        bundle = export_classifier(run, out=root / f"bundle{number}", **options)
        seconds = time.perf_counter() - start
        (format,) = options.get("formats", (ONNX,))
        model = bundle.open(format, provider=provider)
        size = sum(path.stat().st_size for path in bundle.path.glob("model.*"))
        yield Contender(what, model.answer, model.feed, seconds, size, model.load_seconds)


def others(run: Run, root: Path, device: torch.device) -> Iterator[Contender]:
    """The same network in PyTorch, and by timm's own way to ONNX; neither normalises pixels nor orders the classes."""
    record = run.record.backbone
    backbone = load_backbone(record.spec, checkpoint=record.checkpoint)
    network: Any = backbone.network
    network.reset_classifier(CLASSES)
    network.eval().requires_grad_(False)
    path = root / "timm.onnx"
    start = time.perf_counter()
    onnx_export(network, str(path), batch_size=2, input_size=(3, *backbone.preprocessing.crop_size), use_dynamo=True)
    written = time.perf_counter()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = default_threads()
    provider = "CUDAExecutionProvider" if device.type == "cuda" else "CPUExecutionProvider"
    session = onnxruntime.InferenceSession(path, settings, providers=[provider])
    opened = time.perf_counter()
    yield Contender(
        TIMM,
        lambda fed: session.run(None, {"input0": fed}),
        channels_first,
        written - start,
        path.stat().st_size,
        opened - written,
    )
    network.to(device, memory_format=torch.channels_last)
    for what, module in (("PyTorch", network), ("PyTorch, compiled", torch.compile(network))):
        yield Contender(what, partial(in_torch, module, device), channels_last)


def channels_first(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=np.float32)


def channels_last(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.astype(np.float32).transpose(0, 3, 1, 2))


@torch.inference_mode()
def in_torch(module: Callable[[torch.Tensor], torch.Tensor], device: torch.device, images: torch.Tensor) -> object:
    return module(images.to(device)).cpu().numpy()


def race(contenders: list[Contender], size: tuple[int, int], batch_sizes: list[int], rounds: int) -> None:
    """Time every contender once a round, directly after a run of its own that is not counted."""
    for batch in batch_sizes:
        pixels = np.random.default_rng(0).integers(0, 256, (batch, *size, 3), dtype=np.uint8)
        fed = [contender.feed(pixels) for contender in contenders]
        for _ in range(rounds):
            for contender, own in zip(contenders, fed, strict=True):
                contender.answer(own)
                start = time.perf_counter()
                contender.answer(own)
                contender.seconds.setdefault(batch, []).append(time.perf_counter() - start)


def against(contender: Contender, peer: Contender, batch: int) -> float:
    """How much longer than the peer, as a share: the median over the rounds of both in the same round."""
    pairs = zip(contender.seconds[batch], peer.seconds[batch], strict=True)
    return statistics.median(own / other for own, other in pairs) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--networks", default="lite0,resnet50")
    parser.add_argument("--batch-sizes", default="1,16")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    device, batch_sizes = torch.device(arguments.device), [int(size) for size in arguments.batch_sizes.split(",")]
    libraries = ", ".join(f"{name} {versions()[name]}" for name in ("torch", "timm") if name in versions())
    title = (
        f"{describe_device(device)}, {default_threads()} threads, {libraries}, onnxruntime {onnxruntime.__version__}"
    )
    table = Table(title=title)
    for column in ("network", "file", "export s", "MB", "load s"):
        table.add_column(column, justify="left" if column in ("network", "file") else "right")
    for batch in batch_sizes:
        table.add_column(f"images/s, batch {batch}", justify="right")
        table.add_column("against bare", justify="right")
    for name in arguments.networks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            run = make_run(name, Path(folder))
            contenders = [*others(run, Path(folder), device), *ours(run, Path(folder), device.type)]
            size = run.record.backbone.preprocessing.crop_size
            race(contenders, tuple(size), batch_sizes, arguments.rounds)
        bare = next(contender for contender in contenders if contender.what == TIMM)
        for contender in contenders:
            speeds = [
                text
                for batch in batch_sizes
                for text in (
                    f"{batch / statistics.median(contender.seconds[batch]):,.1f}",
                    f"{against(contender, bare, batch):+.1%}",
                )
            ]
            numbers = (contender.export_seconds, contender.bytes / 1e6, contender.load_seconds)
            cells = ["" if np.isnan(value) else f"{value:.2f}" for value in numbers]
            table.add_row(name, contender.what, *cells, *speeds)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()

"""Times whole trainings: ours, an eager PyTorch loop, scikit-learn, and the floors, in one run on the device it finds.

python -m benchmarks.training [--device cpu|cuda] [--parts one,bank,stream,cold]
torchrun --nproc-per-node 2 -m benchmarks.training --parts many
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from headsmith.core.distributed import Processes
from headsmith.core.environment import describe_device
from headsmith.trainer import TrainConfig
from headsmith.trainer.fitting import fit_heads

from .training_data import GLYPHS, IMAGENET, IMAGENET_21K, Shape, splits

Splits = Mapping[str, tuple[Tensor, Tensor]]
NEURALSORT = TrainConfig(loss="neuralsort", m=16, epochs=20, patience=20)


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds for some epochs over some rows by some heads, and what was reached."""

    what: str
    seconds: float
    epochs: int
    steps: int
    images: int
    peak_gib: float = float("nan")
    top1: float = float("nan")
    note: str = ""


def ours(
    what: str,
    data: Splits,
    shape: Shape,
    configs: list[TrainConfig],
    memory: int | None = None,
    processes: Processes | None = None,
) -> Row:
    """A fit; its time starts when the features are in place."""
    cuda = configs[0].device == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    fitted = fit_heads(data, shape.classes, configs, memory=memory, processes=processes)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else float("nan")
    first = fitted[0]
    epochs = len(first.history)
    steps = epochs * -(-shape.train // first.config.batch_size)
    return Row(what, first.seconds, epochs, steps, epochs * shape.train, peak, first.val.top1, first.placement)


def eager(data: Splits, shape: Shape, batch: int, epochs: int, device: torch.device) -> Row:
    """What people write: features on the device, `nn.Linear`, `F.cross_entropy`, `torch.optim.Adam`, validation."""
    features, labels = (tensor.to(device) for tensor in data["train"])
    rows, targets = (tensor.to(device) for tensor in data["val"])
    head = torch.nn.Linear(shape.dims, shape.classes).to(device)
    optimizer = torch.optim.Adam(head.parameters(), lr=3e-3)
    top1 = 0.0
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(epochs):
        for chosen in torch.randperm(len(labels)).to(device).split(batch):
            loss = torch.nn.functional.cross_entropy(head(features[chosen].float()), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.inference_mode():
            hits = [
                (head(part.float()).argmax(1) == own).sum()
                for part, own in zip(rows.split(8192), targets.split(8192), strict=True)
            ]
        top1 = float(sum(hits)) / len(targets)
    _synchronize(device)
    steps = epochs * -(-shape.train // batch)
    return Row(
        f"eager loop, cross-entropy, batch {batch}",
        time.perf_counter() - start,
        epochs,
        steps,
        epochs * shape.train,
        top1=top1,
    )


def scikit_learn(data: Splits, classes: int) -> Row:
    """An epoch of `SGDClassifier` on the rows of a few classes, on the CPU."""
    from sklearn.linear_model import SGDClassifier

    features, labels = data["train"]
    kept = labels < classes
    rows, targets = features[kept].float().numpy(), labels[kept].numpy()
    start = time.perf_counter()
    SGDClassifier(loss="log_loss", max_iter=1, tol=None).fit(rows, targets)
    count = len(targets)
    what = f"scikit-learn SGDClassifier, {count} rows, {classes} classes, CPU"
    return Row(what, time.perf_counter() - start, 1, count, count)


def floors(shape: Shape, batch: int, itemsize: int, copy: float, flops: float) -> Row:
    """Time a step cannot beat: its product twice, or its bytes (rows, weights and Adam's moments in and out)."""
    parameters = shape.dims * shape.classes
    moved = batch * shape.dims * itemsize * 2 + parameters * (3 * 4 * 2 + itemsize)
    seconds = max(4 * batch * parameters / flops, moved / copy)
    steps = -(-shape.train // batch)
    note = f"{moved / 1e6:.0f} MB at {copy / 1e12:.2f} TB/s, {4 * batch * parameters / 1e9:.1f} GFLOP a step"
    return Row(f"floor of one head, batch {batch}", seconds * steps * 20, 20, steps * 20, 20 * shape.train, note=note)


def measured_copy(device: torch.device) -> float:
    """Bytes a second, read plus written, of a copy in the device's memory."""
    source = torch.empty(2**28 if device.type == "cuda" else 2**25, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / _best(lambda: target.copy_(source), device)


def measured_flops(device: torch.device) -> float:
    """FLOPs a second of a square product, half precision on a GPU."""
    size, dtype = (8192, torch.float16) if device.type == "cuda" else (1024, torch.float32)
    left = torch.randn(size, size, device=device, dtype=dtype)
    return 2 * size**3 / _best(lambda: left @ left, device)


def measured_upload(device: torch.device) -> float:
    """Bytes a second from pinned memory to the device."""
    source = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(source, device=device)
    return source.numel() / _best(lambda: target.copy_(source, non_blocking=True), device)


def one(device: torch.device) -> Iterator[Row]:
    """One head: the main table."""
    cuda = device.type == "cuda"
    shape, dtype = (IMAGENET, torch.float16) if cuda else (GLYPHS, torch.float32)
    data = splits(shape, dtype, device)
    config = _with(NEURALSORT, device=device.type)
    copy, flops = measured_copy(device), measured_flops(device)
    for batch in (500, 4096) if cuda else (512,):
        _warm_up(data, shape, [_with(config, batch_size=batch)])
        yield ours(f"neuralsort, batch {batch}", data, shape, [_with(config, batch_size=batch)])
        plain = _with(config, loss="softmax", batch_size=batch)
        _warm_up(data, shape, [plain])
        yield ours(f"softmax, batch {batch}", data, shape, [plain])
        yield eager(data, shape, batch, 1 if cuda else 20, device)
        yield floors(shape, batch, 2 if cuda else 4, copy, flops)
    yield scikit_learn(data, 20)


def bank(device: torch.device) -> Iterator[Row]:
    """64 heads against one."""
    data = splits(IMAGENET, torch.float16, device)
    for batch in (500, 4096):
        config = _with(NEURALSORT, device="cuda", epochs=2, batch_size=batch)
        rates = [1e-3 * 1.05**i for i in range(64)]
        equal = [_with(config, learning_rate=rate) for rate in rates]
        methods = ("softmax", "neuralsort", "softsort", "bitonic")
        mixed = [
            _with(
                config, loss=methods[i % 4], p_k=None, inverse_temperature=0.25 * 2 ** (i // 4 % 4), learning_rate=rate
            )
            for i, rate in enumerate(rates)
        ]
        banks = {"one head": [config], "64 heads, one loss": equal, "64 heads, 16 losses": mixed}
        for what, configs in banks.items():
            _warm_up(data, IMAGENET, configs)
            yield ours(f"{what}, batch {batch}", data, IMAGENET, configs)


def stream(device: torch.device) -> Iterator[Row]:
    """Features that may not stay on the device."""
    upload = measured_upload(device)
    data = splits(IMAGENET, torch.float16, device)
    for batch in (500, 4096):
        config = _with(NEURALSORT, device="cuda", batch_size=batch)
        _warm_up(data, IMAGENET, [config], memory=0)
        row = ours(f"streamed, batch {batch}", data, IMAGENET, [config], memory=2**30)
        rate = row.images * IMAGENET.dims * 2 / row.seconds
        note = f"{rate / 1e9:.1f} GB/s of {upload / 1e9:.1f} GB/s measured: {rate / upload:.0%}"
        yield Row(row.what, row.seconds, row.epochs, row.steps, row.images, row.peak_gib, row.top1, note)


def cold(device: torch.device) -> Iterator[Row]:
    """From a feature set on disk to an exported head, in fresh processes."""
    from headsmith.trainer import FeatureSet

    data = splits(IMAGENET, torch.float16, device)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        names = [f"{label:04d}" for label in range(IMAGENET.classes)]
        parts = {**data, "test": tuple(tensor[:10_000] for tensor in data["val"])}
        features, labels = ({name: pair[index] for name, pair in parts.items()} for index in (0, 1))
        FeatureSet.from_arrays(features, labels, class_names=names, out=root / "features")
        times = root / "times"
        code = COLD.format(root=str(root), times=str(times))
        start = time.time()
        subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
        stamps = [start, *(float(line) for line in times.read_text().split())]
        took = [after - before for before, after in pairwise(stamps)]
        note = ", ".join(f"{what} {s:.1f}" for what, s in zip(("import", "load", "train", "export"), took, strict=True))
        steps = 20 * -(-IMAGENET.train // 500)
        yield Row("disk to ONNX", sum(took), 20, steps, 20 * IMAGENET.train, note=note)


COLD = """
import time
stamps = []
import headsmith
from headsmith.trainer import FeatureSet, train
from headsmith.export import export_classifier
stamps.append(time.time())
features = FeatureSet.load("{root}/features")
stamps.append(time.time())
run = train(features, out="{root}/run", loss="neuralsort", epochs=20, patience=20, batch_size=500)
stamps.append(time.time())
export_classifier(run, out="{root}/bundle", head_only=True)
stamps.append(time.time())
open("{times}", "w").write("\\n".join(map(str, stamps)))
"""


def many(device: torch.device) -> Iterator[Row]:
    """ImageNet-21K-P's shape, on as many GPUs as processes were started."""
    data = splits(IMAGENET_21K, torch.float16, device)
    config = _with(NEURALSORT, device="cuda", m=50, batch_size=16_384)
    processes = Processes.joined("cuda")
    _warm_up(data, IMAGENET_21K, [config], processes=processes)
    what = f"{processes.count} GPU, batch 16384, 10,450 classes"
    yield ours(what, data, IMAGENET_21K, [config], processes=processes)


PARTS: dict[str, Callable[[torch.device], Iterator[Row]]] = {
    "one": one,
    "bank": bank,
    "stream": stream,
    "cold": cold,
    "many": many,
}


def _warm_up(
    data: Splits,
    shape: Shape,
    configs: list[TrainConfig],
    memory: int | None = None,
    processes: Processes | None = None,
) -> None:
    """Compile what a fit compiles: three epochs on the rows of a few steps."""
    rows = 6 * configs[0].batch_size
    few = {name: (features[:rows], labels[:rows]) for name, (features, labels) in data.items()}
    short = [_with(config, epochs=3, patience=3) for config in configs]
    fit_heads(few, shape.classes, short, memory=memory, processes=processes)


def _with(config: TrainConfig, **changes: object) -> TrainConfig:
    return replace(config, **changes)  # type: ignore[arg-type]


def _best(call: Callable[[], object], device: torch.device) -> float:
    seconds = []
    for _ in range(6):
        _synchronize(device)
        start = time.perf_counter()
        call()
        _synchronize(device)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--parts", default="one")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    table = Table(title=f"{describe_device(device)}, torch {torch.__version__}")
    for column in ("what", "seconds", "epochs", "us a step", "images/s", "peak GiB", "val top-1", ""):
        table.add_column(column, justify="left" if column in ("what", "") else "right")
    for part in arguments.parts.split(","):
        for row in PARTS[part](device):
            Console(stderr=True).print(row)
            table.add_row(
                row.what,
                f"{row.seconds:.2f}",
                str(row.epochs),
                f"{row.seconds / row.steps * 1e6:.1f}",
                f"{row.images / row.seconds:,.0f}",
                f"{row.peak_gib:.1f}",
                f"{row.top1:.1%}",
                row.note,
            )
    if os.environ.get("RANK", "0") == "0":
        Console(width=160).print(table)


if __name__ == "__main__":
    main()

"""Images a second of decoding, of the network and of both, on synthetic JPEGs: python -m benchmarks.extraction."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from headsmith.core.environment import describe_device, pick_device
from headsmith.models import load_backbone
from headsmith.models.backbone import Backbone
from headsmith.trainer.features import FeatureSet, open_images
from headsmith.trainer.features.extraction.embedding import Embedder
from headsmith.trainer.features.images.batches import decode

DIFFERENT = 512
SIZE = (500, 375)  # ImageNet's median


def draw(path: Path, seed: int) -> None:
    """A JPEG of about 60 kB: smooth shapes and some grain."""
    random = np.random.default_rng(seed)
    shapes = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize(
        SIZE, Image.Resampling.BICUBIC
    )
    grain = random.normal(0, 8, (SIZE[1], SIZE[0], 1))
    Image.fromarray((np.asarray(shapes) + grain).clip(0, 255).astype(np.uint8)).save(path, quality=90)


def make_images(root: Path, count: int) -> Path:
    """``count`` images in two classes, at most ``DIFFERENT`` of them different."""
    paths = [root / "images" / "ab"[number % 2] / f"{number:05d}.jpg" for number in range(count)]
    for name in "ab":
        (root / "images" / name).mkdir(parents=True)
    with ThreadPoolExecutor() as threads:
        list(threads.map(draw, paths[:DIFFERENT], range(count)))
    for number, path in enumerate(paths[DIFFERENT:]):
        shutil.copyfile(paths[number % DIFFERENT], path)
    return root / "images"


def make_backbone(name: str, root: Path) -> tuple[Backbone, list[str]]:
    """A timm network with random weights, and the flags that name it."""
    path = root / f"{name}.pth"
    torch.manual_seed(0)
    torch.save(timm.create_model(name).state_dict(), path)
    return load_backbone(f"timm:{name}", checkpoint=path), ["--backbone", f"timm:{name}", "--checkpoint", str(path)]


def decoding(folder: Path, backbone: Backbone, most: int) -> Iterator[tuple[str, float]]:
    """Decode, resize and crop alone, with 1, 2, 4, ... workers."""
    images = open_images(folder)
    for workers in [2**power for power in range(most.bit_length())]:
        some = range(min(len(images), 256 * workers))
        stream = decode(images, some, lambda image, _: backbone.preprocessing(image), workers)
        start = time.perf_counter()
        rows = sum(1 for _ in stream)
        yield f"decoding, {workers} workers", rows / (time.perf_counter() - start)


def network(backbone: Backbone, device: torch.device, batch: int, seconds: float) -> Iterator[tuple[str, float]]:
    """The network alone, fed from memory as in an extraction."""
    pixels = np.random.default_rng(0).integers(0, 256, (batch, *backbone.preprocessing.crop_size, 3), dtype=np.uint8)
    for layout, memory in (("contiguous", torch.contiguous_format), ("channels last", torch.channels_last)):
        for amp in (False, True) if device.type == "cuda" else (False,):
            embed = Embedder(backbone, device, torch.float16, amp)
            embed.network.to(memory_format=memory)
            embed(pixels, []).wait()
            start, behind, rows = time.perf_counter(), embed(pixels, []), batch
            while rows < 3 * batch or time.perf_counter() - start < seconds:
                ahead = embed(pixels, [])
                behind.wait()
                behind, rows = ahead, rows + batch
            behind.wait()
            yield f"network, {layout}, {'autocast' if amp else 'float32'}", rows / (time.perf_counter() - start)


def whole(
    folder: Path, root: Path, flags: list[str], device: torch.device, counts: list[int]
) -> Iterator[tuple[str, float]]:
    """`headsmith extract`, in one process and in several on the one device; starting up is not counted."""
    for amp in (False, True) if device.type == "cuda" else (False,):
        for processes in counts:
            out = root / f"features-{amp}-{processes}"
            run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
            run += ["-m", "headsmith", "extract", str(folder), "--out", str(out), "--device", str(device), *flags]
            threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
            environment = os.environ | {"OMP_NUM_THREADS": threads}
            subprocess.run([*run, *(["--amp"] if amp else [])], check=True, stdout=subprocess.DEVNULL, env=environment)  # noqa: S603
            speed = FeatureSet.load(out).manifest.statistics.images_per_second
            yield f"extract, {processes} processes, {'autocast' if amp else 'float32'}", speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--backbone", nargs="+", default=["tf_efficientnet_lite0"], help="timm names")
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    device = pick_device(arguments.device)
    cores = len(os.sched_getaffinity(0))
    table = Table("what", "images/s", title=f"{describe_device(device)}, {cores} cores, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = make_images(root, arguments.images)
        for number, spec in enumerate(arguments.backbone):
            backbone, flags = make_backbone(spec, root)
            (root / spec).mkdir()
            rows = [*decoding(folder, backbone, cores)] if number == 0 else []
            rows += network(backbone, device, arguments.batch_size, arguments.seconds)
            flags += ["--batch-size", str(arguments.batch_size)]
            rows += whole(folder, root / spec, flags, device, arguments.processes)
            for what, speed in rows:
                table.add_row(what if what.startswith("decoding") else f"{spec}: {what}", f"{speed:,.0f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

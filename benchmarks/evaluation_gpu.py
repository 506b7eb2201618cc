"""Exported files on a CUDA card under onnxruntime, beside PyTorch on the same card, in one run."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import timm
import torch
from onnxruntime import OrtValue
from torch import nn

from headsmith.core.cpus import usable_cpus
from headsmith.evaluate.metrics import Scorer, agreement
from headsmith.export.classifier import Classifier
from headsmith.export.formats.node_placement import misplaced_nodes, nodes_by_provider
from headsmith.export.formats.onnx_format import save_onnx, write_onnx
from headsmith.export.formats.onnx_runtime import OnnxModel
from headsmith.export.metadata import Metadata, identity
from headsmith.export.options import OPSET
from headsmith.export.precision.half import to_half
from headsmith.models.backbone import load_backbone
from headsmith.models.execution_provider import provider_of
from headsmith.models.heads import Linear
from headsmith.models.preprocessing import Preprocessing
from headsmith.models.preprocessing_layers import Normalize
from headsmith.models.pretrained import backbone_classifier

NETWORKS = ("resnet50", "vit_base_patch16_224")
BATCH, IMAGES, SECONDS, CLASSES = 64, 256, 0.75, 1000
COMPILE_UNTIL = 90.0
Step = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class GpuRow:
    """Images a second of one way to run a network, and what was found."""

    network: str
    precision: str
    what: str
    rate: float
    found: str = ""


@dataclass(frozen=True)
class Written:
    """A network with random weights: its files by precision, the module, and its recipe."""

    files: dict[str, Path]
    network: nn.Module
    recipe: Preprocessing


def gpu(report: Callable[[GpuRow], None]) -> None:
    """Run everything; what fails is a row that says why, and what no time is left for is left out and said."""
    started = time.perf_counter()
    onnxruntime.preload_dlls()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        networks: dict[str, Written] = {}
        for name in NETWORKS:
            with failures(report, name, "", "export"):
                before = time.perf_counter()
                networks[name] = write(name, Path(folder, name))
                report(GpuRow(name, "", "export to ONNX", 0, f"{time.perf_counter() - before:.0f} s"))
        for name, written in networks.items():
            for precision, path in written.files.items():
                onnxruntime_rows(name, precision, path, written.files["fp32"], report)
        for compiled in (False, True):
            for name, written in networks.items():
                for precision in written.files:
                    what = f"PyTorch {'compiled' if compiled else 'eager'}"
                    if compiled and time.perf_counter() - started > COMPILE_UNTIL:
                        report(GpuRow(name, precision, what, 0, "left out: no time left"))
                        continue
                    with failures(report, name, precision, what):
                        step = torch_step(written, precision, compiled=compiled)
                        report(GpuRow(name, precision, what, rate(step)))


@contextmanager
def failures(report: Callable[[GpuRow], None], network: str, precision: str, what: str) -> Iterator[None]:
    """One part that fails does not end the others."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a benchmark on a borrowed machine: say it, go on
        report(GpuRow(network, precision, what, 0, f"FAILED: {' '.join(str(error).split())[:200]}"))


def write(name: str, folder: Path) -> Written:
    """A network of timm with random weights as ONNX files in float32 and float16."""
    folder.mkdir()
    torch.manual_seed(0)
    network = timm.create_model(name).eval()
    torch.save(network.state_dict(), folder / "weights.pth")
    backbone = load_backbone(f"timm:{name}", checkpoint=folder / "weights.pth")
    own = backbone_classifier(backbone)
    head = Linear(own.weight.shape[1], own.weight.shape[0])
    head.load_state_dict({"weight": own.weight, "bias": own.bias})
    labels = tuple(f"class {number}" for number in range(CLASSES))
    about = identity(backbone.record(), backbone.feature_dim)
    metadata = Metadata(labels, "uint8-nhwc", backbone.preprocessing, about, "")
    files = {precision: folder / f"{precision}.onnx" for precision in ("fp32", "fp16")}
    write_onnx(Classifier(head, backbone, "uint8-nhwc"), metadata, files["fp32"])
    half = replace(metadata, precision="fp16")
    save_onnx(to_half(onnx.load(files["fp32"])), half, files["fp16"], opset=OPSET)
    return Written(files, network, backbone.preprocessing)


def onnxruntime_rows(name: str, precision: str, path: Path, reference: Path, report: Callable[[GpuRow], None]) -> None:
    """Plain runs, a loop with bound buffers as one writes it by hand, and ours; flips against float32 on the CPU."""
    with failures(report, name, precision, "onnxruntime"):
        model = OnnxModel(path, provider_of("cuda"), usable_cpus())
        nodes, wrong = nodes_by_provider(model.session), misplaced_nodes(model.session, path)
        report(GpuRow(name, precision, "nodes by provider", 0, f"{nodes}, misplaced: {wrong or 'none'}"))
        feed = model.metadata.input_name
        plain, by_hand = rate(lambda batch: model.session.run(None, {feed: batch})), rate(bound_by_hand(path, feed))
        ours = rate(lambda batch: model.run(batch))
        again = rate(bound_by_hand(path, feed))
        by_hand = max(by_hand, again)
        scorer, labels = Scorer(CLASSES), np.arange(BATCH)
        scored = rate(lambda batch: scorer.add(model.run(batch).logits, labels))
        report(GpuRow(name, precision, "onnxruntime: session.run", plain))
        report(GpuRow(name, precision, "onnxruntime: bound by hand", by_hand))
        report(GpuRow(name, precision, "headsmith", ours, f"{ours / by_hand:.1%} of the bound loop"))
        report(GpuRow(name, precision, "headsmith, scored", scored, f"{scored / by_hand:.1%} of the bound loop"))
    with failures(report, name, precision, "flips"):
        found = flips(OnnxModel(path, provider_of("cuda"), 1), reference)
        report(GpuRow(name, precision, "against fp32 on the CPU", 0, found))


def bound_by_hand(path: Path, feed: str) -> Step:
    """The loop that one writes for speed: every buffer is allocated once, for one size of batch."""
    cuda = provider_of("cuda")
    wanted = [(cuda.kind, cuda.with_defaults(1)), "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(path, providers=wanted)
    binding = session.io_binding()
    first = batches(1)[0]
    fed = OrtValue.ortvalue_from_numpy(first, "cuda")
    binding.bind_ortvalue_input(feed, fed)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")

    def step(batch: np.ndarray) -> list[np.ndarray]:
        fed.update_inplace(batch)
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()

    return step


def flips(model: OnnxModel, reference: Path) -> str:
    """First answers that a file on the card gives otherwise than the float32 file on the CPU."""
    here, there, largest = Scorer(CLASSES), Scorer(CLASSES), 0.0
    for batch, two in zip(batches(IMAGES // BATCH), exact_logits(reference), strict=True):
        labels = np.zeros(len(batch), dtype=np.int64)
        one = model.run(batch).logits
        largest = max(largest, float(np.abs(one - two).max() / np.abs(two).max()))
        here.add(one, labels)
        there.add(two, labels)
    found = agreement(here.scores(), there.scores())
    margins = f", margins there {np.sort(found.margins[:, 1])[-3:]}" if found.different else ""
    return f"{found.equal} equal, {found.tie} ties, {found.different} flips of {IMAGES}; logits {largest:.1e}{margins}"


@cache
def exact_logits(reference: Path) -> list[np.ndarray]:
    """What the float32 file answers on the CPU."""
    model = OnnxModel(reference, provider_of("cpu"), usable_cpus())
    return [model.run(batch).logits for batch in batches(IMAGES // BATCH)]


def torch_step(written: Written, precision: str, *, compiled: bool) -> Step:
    """The same network in PyTorch, from the same pixels on the host to logits on the host."""
    dtype = {"fp32": torch.float32, "fp16": torch.float16}[precision]
    normalize = Normalize(written.recipe).cuda()
    network = written.network.to("cuda", dtype, memory_format=torch.channels_last)

    def classify(pixels: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = network(normalize(pixels.permute(0, 3, 1, 2)).to(dtype))
        return logits.float()

    run = torch.compile(classify) if compiled else classify

    def step(batch: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return run(torch.from_numpy(batch).cuda()).cpu().numpy()

    return step


def batches(count: int) -> list[np.ndarray]:
    """Smooth random pictures, uint8 ``(64, 224, 224, 3)``."""
    random = np.random.default_rng(0)
    coarse = torch.from_numpy(random.uniform(0, 255, (count * BATCH, 3, 7, 7)).astype(np.float32))
    smooth = nn.functional.interpolate(coarse, size=224, mode="bicubic").clamp(0, 255)
    pixels = smooth.permute(0, 2, 3, 1).to(torch.uint8).contiguous().numpy()
    return [pixels[start : start + BATCH] for start in range(0, len(pixels), BATCH)]


def rate(step: Step) -> float:
    """Images a second, warmed up, over rotating batches; the best of three."""
    inputs = batches(4)
    for batch in inputs[:2]:
        step(batch)
    found = []
    for _ in range(3):
        runs, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < SECONDS / 3 or runs < 3:
            step(inputs[runs % len(inputs)])
            runs += 1
        found.append(runs * BATCH / spent)
    return max(found)

"""What an evaluation costs beside the network on a CPU: its own work, and decoding."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from headsmith.core.cpus import usable_cpus
from headsmith.evaluate.held_out_record import HeldOutSource
from headsmith.evaluate.measuring.one_pass import measure
from headsmith.evaluate.open_held_out import open_data
from headsmith.evaluate.options import EvaluationOptions
from headsmith.evaluate.zoo import find_candidates, open_candidate
from headsmith.export.held_out import Batch
from headsmith.export.runtime import Model
from headsmith.trainer.features.images.batches import image_batches

BATCH, BATCHES, REPEATS, PICTURES = 32, 6, 5, 400
SIZE = (500, 375)


@dataclass
class Decoded:
    """Held-out images that are decoded already."""

    data: list[Batch]
    index: np.ndarray = field(default_factory=lambda: np.arange(1000))
    name: str = "decoded"
    sets: None = None

    def __len__(self) -> int:
        return len(self.data) * BATCH

    def rows_of(self, ids: list[str]) -> list[int]:
        """Which inputs have these ids."""
        return [int(sample) for sample in ids]

    def batches(self, size: int) -> Iterator[Batch]:
        """All of them, as they are."""
        yield from self.data


def overhead() -> list[tuple[str, float, int, str]]:
    """EfficientNet-Lite0 over decoded batches: bare runs of its session, and an evaluation; the best of each.

    Seconds are those of the CPUs, which other work on the machine changes least.
    """
    (candidate,) = find_candidates(["lite0"])
    model, held_out = open_candidate(candidate, threads=usable_cpus()), decoded()
    options, bare, ours = EvaluationOptions("decoded", batch_size=BATCH), [], []
    for _ in range(REPEATS):
        bare.append(cpu_seconds(lambda: bare_runs(model, held_out)))
        ours.append(cpu_seconds(lambda: measure(model, held_out, options)))
    rows = len(held_out)
    added = f"{min(ours) / min(bare) - 1:+.1%} of the bare runs"
    return [
        ("session.run over decoded batches", min(bare), rows, ""),
        ("the evaluation of these", min(ours), rows, added),
    ]


def bare_runs(model: Model, held_out: Decoded) -> None:
    """Plain runs, the warm-up among them; the layout that the file takes is made here, as an evaluation does."""
    name, outputs = model.metadata.input_name, [value.name for value in model.session.get_outputs()]
    for batch in (held_out.data[0], *held_out.data):
        model.session.run(outputs, {name: model.feed(batch.inputs)})


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def decoded() -> Decoded:
    """Batches of smooth random pictures."""
    random = np.random.default_rng(0)
    ids = [str(number) for number in range(BATCH * BATCHES)]
    batches = [
        Batch(picture(random, (224, 224), BATCH), random.integers(0, 1000, BATCH), ids[start : start + BATCH])
        for start in range(0, len(ids), BATCH)
    ]
    return Decoded(batches)


def picture(random: np.random.Generator, size: tuple[int, int], count: int) -> np.ndarray:
    coarse = torch.from_numpy(random.uniform(0, 255, (count, 3, 12, 12)).astype(np.float32))
    smooth = torch.nn.functional.interpolate(coarse, size=size[::-1], mode="bicubic").clamp(0, 255)
    noise = torch.from_numpy(random.normal(0, 6, smooth.shape).astype(np.float32))
    return (smooth + noise).clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()


def decoding() -> list[tuple[str, float, int, str]]:
    """JPEG files of 500 x 375 pixels, decoded, resized to 256 and cropped to 224, in as many threads as CPUs."""
    (candidate,) = find_candidates(["lite0"])
    random, cores = np.random.default_rng(0), usable_cpus()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "photos", "one")
        place.mkdir(parents=True)
        for number in range(PICTURES):
            Image.fromarray(picture(random, SIZE, 1)[0]).save(place / f"{number}.jpg", quality=90)
        images = open_data(HeldOutSource(str(place.parent))).images
        found = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            for _ in image_batches(images, candidate.preprocessing, BATCH):
                pass
            found.append(time.perf_counter() - start)
    rate = PICTURES / min(found)
    said = f"{rate:,.0f} a second on {cores} CPUs, {rate / cores:,.0f} each, so {16 * rate / cores:,.0f} on 16"
    return [("decode, resize, crop of JPEG files", min(found), PICTURES, said)]

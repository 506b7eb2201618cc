"""How fast a file answers, and what memory it takes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil
import torch

from ..export.proof.held_out import HeldOut, HeldOutImages
from ..export.runtime import Array, Model
from .measurement import Measurement

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DECODED = 64


@dataclass(frozen=True)
class Effort:
    """How long speed is measured.

    Attributes:
        seconds: For latency, and for each batch size.
        runs: At most, of latency.
        sizes: Batch sizes of throughput.
    """

    seconds: float
    runs: int
    sizes: tuple[int, ...]


CHEAP, THOROUGH = Effort(0.3, 50, ()), Effort(2.0, 500, BATCH_SIZES)


@dataclass(frozen=True)
class Latency:
    """Percentiles of the time of one run with one input, in milliseconds."""

    p50: float
    p90: float
    p99: float
    runs: int


@dataclass(frozen=True)
class Speed:
    """Times and memory. Warm-up is in none of them but ``first_run_seconds``.

    Attributes:
        load_seconds: Opening the file.
        first_run_seconds: The first batch, which is in no other figure.
        images_per_second: Through the runtime over the whole held-out set, without decoding.
        images_per_second_overall: With decoding, which runs beside the runtime, and scoring.
        decoded_per_second: Images decoded, resized and cropped a second with nothing beside it; ``None`` for features.
        latency: At batch 1.
        throughput: Images a second through the runtime, by batch size.
        rss_bytes: Memory of the process, at most.
        gpu_bytes: Memory that the process holds on the GPU; ``None`` where there is none, or nobody can tell.
    """

    load_seconds: float
    first_run_seconds: float
    images_per_second: float
    images_per_second_overall: float
    decoded_per_second: float | None
    latency: Latency
    throughput: dict[int, float]
    rss_bytes: int
    gpu_bytes: int | None


def measure_speed(
    model: Model, held_out: HeldOut, measured: Measurement, batch_size: int, effort: Effort, gpu_before: int | None
) -> Speed:
    """Time a file that has been measured, so that it is warm.

    Args:
        model: The file.
        held_out: The inputs as it takes them.
        measured: The pass over them.
        batch_size: Inputs a run of that pass.
        effort: How long.
        gpu_before: `gpu_memory` before the file was opened.
    """
    sizes = [size for size in effort.sizes if model.metadata.batch_size(size) == size]
    throughput = {size: _throughput(model, measured.first, size, effort.seconds) for size in sizes}
    rate = len(measured.ids) / measured.session_seconds
    after = gpu_memory(model.provider)
    return Speed(
        load_seconds=model.load_seconds,
        first_run_seconds=measured.first_run_seconds,
        images_per_second=rate,
        images_per_second_overall=len(measured.ids) / measured.seconds,
        decoded_per_second=_decoding(held_out) if isinstance(held_out, HeldOutImages) else None,
        latency=_latency(model, measured.first[:1], effort),
        throughput=throughput or {model.metadata.batch_size(batch_size): rate},
        rss_bytes=psutil.Process().memory_info().rss,
        gpu_bytes=None if after is None or gpu_before is None else max(after - gpu_before, 0),
    )


def gpu_memory(provider: str) -> int | None:
    """Bytes in use on the GPU, by anybody; ``None`` where the provider uses none or torch finds none."""
    if provider != "cuda" or not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return total - free


def _latency(model: Model, inputs: Array, effort: Effort) -> Latency:
    fed = model.feed(inputs)
    times = _times(lambda: model.answer(fed), effort.seconds, effort.runs)
    p50, p90, p99 = (float(value) for value in np.percentile(1000 * times, [50, 90, 99]))
    return Latency(p50, p90, p99, len(times))


def _throughput(model: Model, inputs: Array, size: int, seconds: float) -> float:
    fed = model.feed(np.concatenate([inputs] * -(-size // len(inputs)))[:size])
    times = _times(lambda: model.answer(fed), seconds, 1000)
    return float(size * len(times) / times.sum())


def _times(run: Callable[[], object], seconds: float, most: int) -> Array:
    """Seconds of repeated runs after one that warms up: at least three, for about that long."""
    run()
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < 3 or (len(times) < most and time.perf_counter() - begun < seconds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return np.array(times)


def _decoding(held_out: HeldOutImages) -> float | None:
    """Images decoded, resized and cropped a second, a few of them, in threads."""
    some = held_out.sample(DECODED)
    start = time.perf_counter()
    count = sum(len(batch.ids) for batch in some.batches(16))
    return count / (time.perf_counter() - start)

"""How fast a file answers, and what memory it takes."""

import math
import time
from dataclasses import dataclass, replace

from ...export.held_out import HeldOut, HeldOutImages
from ...export.runtime import Model
from ...models.execution_provider import ExecutionProvider
from ..options import EvaluationOptions
from .one_pass import Measurement

DECODED = 64


@dataclass(frozen=True)
class Latency:
    """The time of one run with one input, in milliseconds, over the rounds in which models took turns.

    Attributes:
        p50: Median.
        p90: Percentile.
        p99: Percentile.
        runs: How many were timed.
        p10: Percentile.
    """

    p50: float
    p90: float
    p99: float
    runs: int
    p10: float

    def __post_init__(self) -> None:
        """Refuse times that are none, or in another order, which a damaged file may name."""
        if not 0 <= self.p10 <= self.p50 <= self.p90 <= self.p99 < math.inf:
            found = f"{self.p10}, {self.p50}, {self.p90}, {self.p99}"
            raise ValueError(f"found {found}, expected 0 <= p10 <= p50 <= p90 <= p99 in milliseconds")

    @property
    def spread(self) -> tuple[float, float, float]:
        """Median, and what 10 % and 90 % of the runs are below."""
        return self.p50, self.p10, self.p90

    def __str__(self) -> str:
        """Median and spread: ``1.93 (1.88-2.10)``."""
        p50, p10, p90 = (f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in self.spread)
        return f"{p50} ({p10}-{p90})"


@dataclass(frozen=True)
class Speed:
    """Times and memory. Warm-up is in none of them but ``first_run_seconds``.

    Attributes:
        load_seconds: Opening the file.
        first_run_seconds: The first batch, which is in no other figure.
        images_per_second: Through the runtime over the whole held-out set, without decoding.
        images_per_second_overall: With decoding, which runs beside the runtime, and scoring; of images that a
            benchmark had decoded before, at most the rate of decoding.
        decoded_per_second: Images decoded, resized and cropped a second with nothing beside it; ``None`` for features.
        latency: At batch 1; ``None`` where it was not timed.
        throughput: Images a second through the runtime, by batch size.
        memory_bytes: What the process grew by when the file was opened and answered a batch; ``None`` where that cannot
            be told apart from what else the process holds.
        gpu_bytes: The same of memory on the GPU; ``None`` where there is none, or nobody can tell.
        thorough: Timed for long, and at many batch sizes.
        busy: CPUs that other programs took while latency and throughput were timed, where that left too few; else
            ``None``.
    """

    load_seconds: float
    first_run_seconds: float
    images_per_second: float
    images_per_second_overall: float
    decoded_per_second: float | None
    latency: Latency | None
    throughput: dict[int, float]
    memory_bytes: int | None
    gpu_bytes: int | None
    thorough: bool = False
    busy: float | None = None

    def __post_init__(self) -> None:
        """Refuse negative times, rates and sizes, and those that are not finite, which a damaged file may name."""
        figures = {name: value for name, value in vars(self).items() if isinstance(value, int | float)}
        figures |= {f"throughput.{size}": rate for size, rate in self.throughput.items()}
        for name, value in figures.items():
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: found {value}, expected a number of 0 or more")


def speed_of_pass(model: Model, held_out: HeldOut, measured: Measurement, options: EvaluationOptions) -> Speed:
    """What a pass over the held-out inputs says of speed; the rest is timed later, see `.timing`.

    Args:
        model: The file.
        held_out: The inputs as it takes them.
        measured: The pass over them.
        options: Of that pass.
    """
    rate, overall = measured.ran / measured.session_seconds, measured.ran / measured.seconds
    decoding = _decoding(held_out) if isinstance(held_out, HeldOutImages) else None
    if decoding is not None and isinstance(held_out, HeldOutImages) and held_out.images.crops is not None:
        overall = min(overall, decoding)  # the crops were there
    return Speed(
        load_seconds=model.load_seconds,
        first_run_seconds=measured.first_run_seconds,
        images_per_second=rate,
        images_per_second_overall=overall,
        decoded_per_second=decoding,
        latency=None,
        throughput={model.metadata.batch_size(options.batch_size): rate},
        memory_bytes=None,
        gpu_bytes=None,
    )


def gpu_name(provider: ExecutionProvider) -> str:
    """The card that a provider runs on; empty where it uses none or torch finds none."""
    if not provider.on_cuda:
        return ""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


def gpu_memory(provider: ExecutionProvider) -> int | None:
    """Bytes in use on the GPU, by anybody; ``None`` where the provider uses none or torch finds none."""
    if not provider.on_cuda:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return total - free


def _decoding(held_out: HeldOutImages) -> float | None:
    """Images decoded, resized and cropped a second, a few of them, in threads."""
    some = held_out.sample(DECODED)
    some = replace(some, images=replace(some.images, crops=None))
    start = time.perf_counter()
    count = sum(len(batch.ids) for batch in some.batches(16))
    return count / (time.perf_counter() - start)

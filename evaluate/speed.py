"""How fast a file answers, and what memory it takes."""

from dataclasses import dataclass


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

"""Times a step (forward and backward) on a CPU or a GPU, and measures its peak memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Step = Callable[[int], object]


@dataclass(frozen=True)
class Timing:
    """Percentiles of one step's time in microseconds, its peak memory in MiB, and how it was launched."""

    p20: float
    p50: float
    p80: float
    peak_mib: float
    launch: str


def _timing(seconds: list[float], peak: float, launch: str) -> Timing:
    ordered = sorted(x * 1e6 for x in seconds)
    return Timing(*(ordered[min(int(len(ordered) * q), len(ordered) - 1)] for q in (0.2, 0.5, 0.8)), peak, launch)


def time_cpu(step: Step, copies: int, budget: float = 1.0) -> Timing:
    """Median of repeated steps, for about `budget` seconds."""
    step(0)
    seconds: list[float] = []
    started = time.perf_counter()
    while len(seconds) < 3 or (time.perf_counter() - started < budget and len(seconds) < 200):
        before = time.perf_counter()
        step(len(seconds) % copies)
        seconds.append(time.perf_counter() - before)
    return _timing(seconds, float("nan"), "eager")


def peak_memory(step: Step) -> float:
    """MiB that one step allocates at most, beyond what exists before it."""
    step(0)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(0)
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def time_eager(step: Step, copies: int) -> Timing:
    """Event time of steps that the host launches one by one, over rotating inputs."""
    step(0)
    torch.cuda.synchronize()
    started = time.perf_counter()
    step(1 % copies)
    torch.cuda.synchronize()
    repeats = 30 if time.perf_counter() - started < 0.01 else 8
    seconds = []
    for i in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        step(i % copies)
        stop.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(stop) / 1e3)
    return _timing(seconds, peak_memory(step), "eager")


def time_graph(step: Step, copies: int, repeats: int = 30) -> Timing:
    """Time of one step inside a captured graph that holds one step for each of `copies` inputs."""
    peak = peak_memory(step)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(3):
            step(i % copies)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(copies):
            step(i)
    timing = time_eager_replays(graph, copies, repeats)
    return Timing(timing.p20, timing.p50, timing.p80, peak, "graph")


def time_eager_replays(graph: torch.cuda.CUDAGraph, copies: int, repeats: int) -> Timing:
    """Event time of a graph's replays, for one of its `copies` steps."""
    seconds = []
    for i in range(repeats + 3):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        if i >= 3:
            seconds.append(start.elapsed_time(stop) / 1e3 / copies)
    return _timing(seconds, float("nan"), "graph")

"""Latency, throughput and memory of the classifiers of one evaluation.

They take turns, so that what slows the machine down for a while slows down all of them.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...core.environment import free_memory
from ...core.progress import progress
from ...export.held_out import HeldOut
from ...export.runtime import Array, Model, Outputs
from ...models.execution_provider import ExecutionProvider
from ..evaluation_warnings import broken_at
from ..result import BROKEN, BUSY, UNTIMED, EvalResult
from ..results import ResultsFolder
from ..zoo import Candidate, open_candidate
from ..zoo.failure import failure
from .machine_load import Watch
from .memory import Growth, collected
from .speed_figures import Latency, gpu_memory

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ROUNDS, LEAST = 5, 3
# Files that are open at once: so many, and so large a part of the free memory, each taken for four times its size.
OPEN, TIMES, PART = 16, 4, 0.5


@dataclass(frozen=True)
class Effort:
    """How long speed is measured.

    Attributes:
        seconds: A classifier, for latency, and for each batch size.
        runs: At most, of each.
        sizes: Batch sizes of throughput.
    """

    seconds: float
    runs: int
    sizes: tuple[int, ...]

    @property
    def thorough(self) -> bool:
        """Whether throughput is measured too."""
        return bool(self.sizes)


CHEAP, THOROUGH = Effort(0.3, 50, ()), Effort(2.0, 500, BATCH_SIZES)


@dataclass(frozen=True)
class Untimed:
    """A classifier that was measured and is still to be timed.

    Attributes:
        candidate: The classifier.
        provider: What ran it.
        result: What was measured.
    """

    candidate: Candidate
    provider: ExecutionProvider
    result: EvalResult


@dataclass(frozen=True)
class _Opened:
    result: EvalResult
    model: Model
    input: Array
    memory: int | None
    gpu: int | None

    def run(self, size: int) -> Callable[[], Outputs]:
        """One run over so many inputs."""
        fed = self.model.feed(np.concatenate([self.input] * size))
        return lambda: self.model.answer(fed)

    def takes(self, size: int, asked: int) -> bool:
        """Whether a run takes so many inputs; where memory did not do for those asked for, no more than it did for."""
        metadata, most = self.model.metadata, self.result.setup.batch_size
        return metadata.batch_size(size) == size and (size <= most or most == metadata.batch_size(asked))

    def broken(self, sizes: Iterable[int]) -> list[int]:
        """The batch sizes, of these and of those before, at which answers are NaN or infinite that are not always."""
        tried = {1, *sizes} | ({min(self.result.setup.batch_size, self.result.n)} if self.result.not_finite else set())
        wrong = {size for size in tried if not np.isfinite(self.run(size)().logits).all()}
        always = bool(self.result.not_finite) and wrong == tried  # of every size: the pass told it
        return sorted({*self.result.not_finite_at, *(() if always else wrong)})


def time_together(found: Sequence[Untimed], data: HeldOut, folder: ResultsFolder, effort: Effort, asked: int) -> None:
    """Time classifiers that were measured, in turns, and write what was found into their results.

    Args:
        found: The classifiers.
        data: The inputs.
        folder: Where the results are.
        effort: How long.
        asked: Inputs a run that were asked for, of which memory may have done for fewer.
    """
    seen: set[tuple[str, str]] = set()
    with progress("Timing", len(found), "models") as advance, collected():
        for group in _groups(found):
            opened = [one for untimed in group if (one := _open(untimed, data, folder, seen)) is not None]
            _time(opened, folder, effort, asked)
            advance(len(group))


def _groups(found: Sequence[Untimed]) -> Iterator[list[Untimed]]:
    """Those that are open at the same time."""
    room, group, size = PART * free_memory(), list[Untimed](), 0
    for one in found:
        needed = TIMES * one.candidate.bytes
        if group and (len(group) == OPEN or size + needed > room):
            yield group
            group, size = [], 0
        group.append(one)
        size += needed
    if group:
        yield group


def _open(untimed: Untimed, data: HeldOut, folder: ResultsFolder, seen: set[tuple[str, str]]) -> _Opened | None:
    """Open a file and see what memory it takes, without its runtime, which was loaded before."""
    candidate, provider, result = untimed.candidate, untimed.provider, untimed.result
    kept, runtime = [one for one in result.warnings if one.code != UNTIMED], (candidate.path.suffix, provider.kind)
    try:
        if runtime not in seen:
            _answered(untimed, data)
            seen.add(runtime)
        gpu, grown = gpu_memory(provider), Growth()
        model, one = _answered(untimed, data)
        memory = grown.bytes(at_least=candidate.bytes)
        after = gpu_memory(provider)
    except Exception as error:  # noqa: BLE001 - as in `evaluate_one`; the others are timed
        why = CodedWarning(UNTIMED, f"speed was not timed: {failure(error, candidate.source)}")
        folder.update(replace(result, warnings=[*kept, why]))
        return None
    used = None if gpu is None or after is None else max(after - gpu, 0)
    return _Opened(replace(result, warnings=kept), model, one, memory, used)


def _answered(untimed: Untimed, data: HeldOut) -> tuple[Model, Array]:
    """A file, opened, that has answered a batch, and one input of it."""
    candidate, result = untimed.candidate, untimed.result
    model = open_candidate(candidate, untimed.provider, result.setup.threads)
    batch = next(data.for_classifier(model.metadata, candidate.names).sample(OPEN).batches(OPEN))
    one = batch.inputs[:1]
    # A file of a fixed batch takes no more memory for more inputs.
    size = model.fixed_batch or min(result.setup.batch_size, len(data))
    model.answer(model.feed(np.concatenate([one] * size)))
    return model, one


def _time(opened: Sequence[_Opened], folder: ResultsFolder, effort: Effort, asked: int) -> None:
    watch = Watch()
    latencies = _in_turns([one.run(1) for one in opened], effort)
    rates: list[dict[int, float]] = [{} for _ in opened]
    for size in effort.sizes:
        able = [place for place, one in enumerate(opened) if one.takes(size, asked)]
        for place, times in zip(able, _in_turns([opened[place].run(size) for place in able], effort), strict=True):
            rates[place][size] = float(size * len(times) / times.sum())
    busy = watch.disturbed()
    for one, times, throughput in zip(opened, latencies, rates, strict=True):
        warnings = [kept for kept in one.result.warnings if kept.code not in (BUSY, BROKEN)]
        broken = one.broken(throughput)
        warnings += broken_at(broken)
        if busy is not None:
            message = f"other programs took {busy:.1f} CPUs while it was timed, so it is faster than this"
            warnings.append(CodedWarning(BUSY, message))
        speed = replace(
            one.result.speed,
            latency=_latency(times),
            throughput=throughput or one.result.speed.throughput,
            memory_bytes=one.memory,
            gpu_bytes=one.gpu,
            thorough=effort.thorough,
            busy=busy,
        )
        folder.update(replace(one.result, speed=speed, warnings=warnings, not_finite_at=broken))


def _latency(times: Array) -> Latency:
    p10, p50, p90, p99 = (float(value) for value in np.percentile(1000 * times, [10, 50, 90, 99]))
    return Latency(p50, p90, p99, len(times), p10)


def _in_turns(runs: Sequence[Callable[[], object]], effort: Effort) -> list[Array]:
    """Seconds of repeated runs of each: some of the one, then some of the next, round after round.

    The first run of every turn, before which another one ran, is not timed. Each is timed three times at least.
    """
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, own in zip(runs, times, strict=True):
            if len(own) < LEAST or sum(own) < effort.seconds:
                run()
                _turn(run, own, effort)
    return [np.array(own) for own in times]


def _turn(run: Callable[[], object], times: list[float], effort: Effort) -> None:
    begun, most = time.perf_counter(), -(-effort.runs // ROUNDS)
    for _ in range(most):
        start = time.perf_counter()
        run()
        end = time.perf_counter()
        times.append(end - start)
        if end - begun >= effort.seconds / ROUNDS:
            return

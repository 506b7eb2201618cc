"""A further process of a benchmark: it takes backbones as the first one does, and ends when all rows are known.

It is in a group of its own, so that Ctrl-C is for the first process alone, which ends it. Where the first one was
killed, it ends with the file that it is at.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ...core.cpus import default_threads
from ...core.environment import free_memory
from ...core.printable import printable
from ...core.records import to_json
from ...core.signals import if_ended
from ...core.typed_json import structured
from ...trainer.features.images.samples import ImageSource
from .budget import Promise
from .options import BenchmarkOptions
from .plan import Unit
from .trained_rows import TrainedRow
from .work_sharing import Work

_WAIT = 10
_THREADS = "OMP_NUM_THREADS"
# A further process costs the start of Python and its libraries, and holds those and a backbone in memory.
_CPUS, _BYTES = 4, 3 * 10**9


@dataclass(frozen=True)
class Job:
    """What a process is told on its standard input, as JSON.

    Attributes:
        first: The number of the process that began it.
        out: See `Work`, as all others.
        source: What opens the images.
        contents: The hashes of their bytes, by their ids.
        crops: Where their crops are kept.
        backwards: See `CropFolder`.
        units: The backbones.
        options: Of the benchmark.
        began: When the command began.
        keys: See `Work`.
        promises: See `Work`.
    """

    first: int
    out: str
    source: ImageSource
    contents: dict[str, str]
    crops: str
    backwards: bool
    units: list[Unit]
    options: BenchmarkOptions
    began: float
    keys: dict[str, str]
    promises: dict[str, Promise]


def with_processes(work: Work) -> Work:
    """The work with the number of processes that share it, where nobody says it.

    As many as there are backbones to do: two where there are two CPUs, one for every four CPUs at most, and for every
    3 GB of free memory.
    """
    if work.options.jobs is not None:
        return work
    backbones = len({unit.base for unit in work.units if work.missing(unit)})
    cpus = default_threads()
    most = min(backbones, max(min(cpus, 2), cpus // _CPUS), free_memory() // _BYTES)
    return replace(work, options=replace(work.options, jobs=max(1, most)))


@contextmanager
def jobs(work: Work) -> Iterator[None]:
    """Let further processes share the work of the block, and the CPUs; they are ended with it."""
    count = work.options.jobs or 1
    with _threads(max(1, default_threads() // count)):
        started: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(1, count):
                command = [sys.executable, "-m", __name__]
                started.append(subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0))  # noqa: S603
                pipe = started[-1].stdin
                if pipe is not None:
                    with pipe:
                        pipe.write(_told(work, number).encode())
            with if_ended(partial(_kill, started)):
                yield
        except BaseException:
            for process in started:
                process.terminate()
            raise
        finally:
            for process in started:
                try:
                    process.wait(_WAIT)
                except subprocess.TimeoutExpired:
                    process.kill()


def _kill(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.kill()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch, onnxruntime and further processes use so many threads."""
    import torch

    before, asked = torch.get_num_threads(), os.environ.get(_THREADS)
    torch.set_num_threads(min(before, count))
    os.environ[_THREADS] = str(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        if asked is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = asked


def _told(work: Work, number: int) -> str:
    """What the further process of this number is told."""
    crops = work.images.crops
    job = Job(
        first=os.getpid(),
        out=str(work.out),
        source=work.images.source,
        contents=dict(work.images.known),
        crops="" if crops is None else str(crops.path),
        backwards=number % 2 == 1,
        units=list(work.units),
        options=work.options,
        began=work.began,
        keys=dict(work.keys),
        promises=work.promises,
    )
    return json.dumps(to_json(job))


def main() -> None:
    """Do what standard input says; rows are told by whoever reads them, and so is what ends all: a full disk."""
    from pathlib import Path

    from ...core.errors import HeadsmithError
    from ...trainer.features.images.image_set import reopen
    from ...trainer.features.images.kept_crops import CropFolder

    def told(row: TrainedRow) -> None:
        if os.getppid() != job.first:
            raise SystemExit(f"headsmith: the benchmark in {job.out} was ended; {row.name} is kept")

    job = structured(json.loads(sys.stdin.read()), Job, "standard input", advice="run the benchmark again")
    try:
        crops = CropFolder(Path(job.crops), job.contents, job.backwards)
        images = replace(reopen(job.source), known=job.contents, crops=crops)
        Work(Path(job.out), images, job.units, job.options, job.began, job.keys, job.promises).do(told)
    except (HeadsmithError, OSError) as error:
        raise SystemExit(f"headsmith: a further process ended: {printable(str(error))}") from None


if __name__ == "__main__":
    main()

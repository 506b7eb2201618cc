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

from ...core.printable import printable
from ...core.records import to_json
from ...core.typed_json import structured
from ...trainer.features.images.samples import ImageSource
from .budget import Promise
from .options import BenchmarkOptions
from .plan import Unit
from .rows import TrainedRow
from .work_sharing import Work

_WAIT = 10


@dataclass(frozen=True)
class Job:
    """What a process is told on its standard input, as JSON.

    Attributes:
        first: The number of the process that began it.
        out: See `Work`, as all others.
        source: What opens the images.
        crops: Where their crops are kept.
        units: The backbones.
        options: Of the benchmark.
        began: When the command began.
        promises: See `Work`.
    """

    first: int
    out: str
    source: ImageSource
    crops: str
    units: list[Unit]
    options: BenchmarkOptions
    began: float
    promises: dict[str, Promise]


@contextmanager
def jobs(work: Work) -> Iterator[None]:
    """Let further processes share the work of the block; they are ended with it."""
    job = Job(
        os.getpid(),
        str(work.out),
        work.images.source,
        str(work.images.crops),
        list(work.units),
        work.options,
        work.began,
        work.promises,
    )
    told = json.dumps(to_json(job))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(work.options.jobs - 1):
            command = [sys.executable, "-m", __name__]
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0))  # noqa: S603
            pipe = started[-1].stdin
            if pipe is not None:
                with pipe:
                    pipe.write(told.encode())
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


def main() -> None:
    """Do what standard input says; rows are told by whoever reads them, and so is what ends all: a full disk."""
    from pathlib import Path

    import torch

    from ...core.cpus import usable_cpus
    from ...core.errors import HeadsmithError
    from ...trainer.features.images.image_set import reopen

    def told(row: TrainedRow) -> None:
        if os.getppid() != job.first:
            raise SystemExit(f"headsmith: the benchmark in {job.out} was ended; {row.name} is kept")

    job = structured(json.loads(sys.stdin.read()), Job, "standard input", advice="run the benchmark again")
    torch.set_num_threads(max(1, usable_cpus() // job.options.jobs))
    try:
        images = replace(reopen(job.source), crops=Path(job.crops))
        Work(Path(job.out), images, job.units, job.options, job.began, job.promises).do(told)
    except (HeadsmithError, OSError) as error:
        raise SystemExit(f"headsmith: a further process ended: {printable(str(error))}") from None


if __name__ == "__main__":
    main()

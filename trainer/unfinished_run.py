"""An unfinished run, which lies beside its place, and one that was put in place and then killed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..core.distributed import Processes
from ..core.errors import keeping
from ..core.files import check_free, only_writer
from .fitting import METRICS
from .fitting.checkpoint import CHECKPOINT
from .run import Run
from .run_record import RECORD
from .run_writer import DivergedError


def _partial_of(out: Path) -> Path:
    return out.resolve().with_name(f"{out.resolve().name}.partial")


def was_cut(out: Path, is_this: Callable[[Run], bool]) -> bool:
    """Whether this very run was put in place and then killed; what it left is removed.

    Args:
        out: The run folder.
        is_this: Whether a run is of the settings and the data that are asked for.
    """
    folder = _partial_of(out)
    logs = [place / METRICS for place in (folder, out)]
    if not all(log.is_file() for log in logs) or logs[0].read_bytes() != logs[1].read_bytes():
        return False
    same = is_this(Run.load(out))
    if same:
        with only_writer(out, "training"):
            shutil.rmtree(folder)
    return same


@contextmanager
def unfinished(out: Path, work: str, overwrite: bool, processes: Processes) -> Iterator[Path]:
    """The folder of the unfinished run: kept when there is something in it to go on from.

    Args:
        out: The run folder to make.
        work: What is done, in a word.
        overwrite: Whether ``out`` may be there.
        processes: Who does it.

    Raises:
        InputError: ``out`` exists, or another process is writing it.
    """
    folder = _partial_of(out)
    with ExitStack() as stack:

        def begin() -> None:
            check_free(out, replace=RECORD if overwrite else None)
            stack.enter_context(only_writer(out, work))
            folder.mkdir(exist_ok=True)

        processes.broadcast(f"{work} {out}", begin)
        if processes.rank:
            yield folder
            return
        finished = False
        try:
            with keeping(lambda: _kept(folder)):
                yield folder
            finished = True
        except DivergedError:
            finished = True
            raise
        finally:
            if finished or not (folder / CHECKPOINT).is_file():
                shutil.rmtree(folder)


def _kept(folder: Path) -> str:
    if not (folder / CHECKPOINT).is_file():
        return ""
    return f"{folder} keeps the epochs up to its last checkpoint; the same command goes on from there"

"""Read damaged files in processes of their own, and see how each reading ends.

An end is ``same`` (the content of the healthy file), ``changed`` (other content, where the format cannot know),
``refused`` (an `InputError` of one line), or a fault: another exception, a signal, too long, too much memory.
"""

import faulthandler
import hashlib
import os
import re
import resource
import select
import shutil
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from mutations import kinds

from headsmith.core.errors import InputError

SECONDS, GIB = 60, 2**30
BATCH = 50  # readings a process
NO_MEMORY = re.compile(
    r"bad_alloc|[Cc]annot allocate|[Uu]nable to (mmap|allocate)|not enough memory|Failed to allocate"
)


@dataclass(frozen=True)
class Target:
    """A reader, and a healthy file for it.

    Attributes:
        name: As in the ids of tests.
        healthy: Makes the file, or the folder, inside an empty folder, and gives its path.
        read: Opens what lies at a path, and gives its content: numbers, text, arrays, dataclasses, containers.
        change_is_seen: Whether the format carries checksums, so that other content is a fault.
        files: Of a folder, which files are damaged.
        count: Damaged files in continuous integration.
        reseal: Makes the folder's own hashes fit a damaged file, so that what lies behind them is seen; called with
            the folder and the file for every second one.
    """

    name: str
    healthy: Callable[[Path], Path]
    read: Callable[[Path], Any]
    change_is_seen: bool
    files: str = "**/*"
    count: int = 200
    reseal: Callable[[Path, Path], None] | None = None

    def __str__(self) -> str:
        return self.name


def fuzz(target: Target, folder: Path) -> Counter[str]:
    """Read damaged files, and count the ends.

    Raises:
        AssertionError: A reading ended as it may not; the message says how to repeat it.
    """
    seed, first = os.environ.get("FUZZ_SEED", "0"), int(os.environ.get("FUZZ_FIRST", "0"))
    last = first + int(os.environ.get("FUZZ_MUTATIONS", target.count))
    (folder / "healthy").mkdir()
    healthy = target.healthy(folder / "healthy")
    ends: Counter[str] = Counter()
    faults: list[str] = []
    while first < last:
        for number, what, end in _readings(target, healthy, folder, seed, range(first, min(first + BATCH, last))):
            first = number + 1
            kind = end.partition(":")[0]
            ends[kind if kind in ("same", "changed", "refused") else "fault"] += 1
            if kind not in ("same", "changed", "refused"):
                again = f"FUZZ_SEED={seed} FUZZ_FIRST={number} FUZZ_MUTATIONS=1 pytest tests/fuzz -k '{target.name}'"
                faults.append(f"{again}\n    {what}: {end}")
    assert not faults, f"{len(faults)} of {sum(ends.values())}, {dict(ends)}\n" + "\n".join(faults[:20])
    return ends


def _readings(target: Target, healthy: Path, folder: Path, seed: str, numbers: range) -> list[tuple[int, str, str]]:
    """The ends of a batch, up to the first one that took its process along."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where threads run; no lock of theirs is taken
        child = os.fork()
    if child == 0:
        os.close(reader)
        _child(target, healthy, folder, seed, numbers, writer)
    os.close(writer)
    lines, running = _lines(reader, child)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    found = [(int(number), what, end) for number, what, end in (line.split("\t", 2) for line in lines if line)]
    said = [entry for entry in found if entry[2] != "begun"]
    if len(said) < len(numbers):
        errors = (folder / "stderr").read_text(errors="replace")
        if not found:
            raise AssertionError(f"{target.name}: the healthy file cannot be read (status {status})\n{errors[-3000:]}")
        number, what, _ = found[-1]
        end = f"{SECONDS} s were not enough" if running else f"signal {signal.strsignal(os.WTERMSIG(status))}"
        said.append((number, what, f"{end}, {errors.partition('Extension modules')[0][-1500:]}"))
    return said


def _lines(reader: int, child: int) -> tuple[list[str], bool]:
    """What a child wrote until it ended; and whether it had to be ended."""
    text = b""
    while True:
        ready, _, _ = select.select([reader], [], [], SECONDS)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return text.decode().split("\n"), True
        part = os.read(reader, 2**16)
        if not part:
            return text.decode().split("\n"), False
        text += part


def _child(target: Target, healthy: Path, folder: Path, seed: str, numbers: range, writer: int) -> None:
    """Read one damaged file after the other; the process ends here."""
    try:
        said = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.enable(said, all_threads=False)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        copied = work / healthy.name
        (shutil.copytree if healthy.is_dir() else shutil.copy)(healthy, copied)
        expected = digest(target.read(copied))
        most = _peak() + 2 * GIB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in numbers:
            random = Random(f"{seed}/{target.name}/{number}")
            what, sealed = _damage(target, copied, random)
            os.write(writer, f"{number}\t{what}\tbegun\n".encode())
            end = _end(target, copied, expected, sealed)
            os.write(writer, f"{number}\t{what}\t{end}\n".encode(errors="replace"))
            _restore(healthy, copied)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - nothing of a child may go on in the parent's code
        traceback.print_exc()
        os._exit(1)


def _damage(target: Target, copied: Path, random: Random) -> tuple[str, bool]:
    """Damage one file; what was done to which, and whether checksums fit it."""
    files = [copied]
    if copied.is_dir():
        files = sorted(file for file in copied.glob(target.files) if file.is_file())
    file = random.choice(files)
    data, other = file.read_bytes(), random.choice(files).read_bytes()
    mutation = random.choice(kinds(file.name, data))
    file.write_bytes(mutation.apply(data or b"\0", other, random))
    sealed = mutation.sealed
    if target.reseal and random.random() < 0.5:
        target.reseal(copied, file)
        sealed = True
    return f"{mutation.name} in {file.name}" + " (sealed)" * sealed, sealed


def _restore(healthy: Path, copied: Path) -> None:
    if not healthy.is_dir():
        shutil.copy(healthy, copied)
        return
    shutil.rmtree(copied)
    shutil.copytree(healthy, copied)


def _end(target: Target, path: Path, expected: str, sealed: bool) -> str:
    try:
        found = digest(target.read(path))
    except InputError as error:
        return _refusal(error)
    except BaseException:  # noqa: BLE001 - whatever else comes is the fault that is looked for
        return "exception " + traceback.format_exc()[-2500:].replace("\n", "\\n")
    if found == expected:
        return "same"
    return "changed" if sealed or not target.change_is_seen else "other content, unseen"


def _refusal(error: InputError) -> str:
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or NO_MEMORY.search(str(cause)):
            return f"refused only when memory ran out, {cause!r}".replace("\n", "\\n")
        cause = cause.__cause__ or cause.__context__
    if "\n" in text or len(text) > 2000:
        return f"not one line, {text[:2000]!r}"
    return f"refused: {text[:200]}"


def digest(value: Any) -> str:
    """A hash of a content; arrays by dtype, shape and bytes."""
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()


def _feed(sha: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        value = (value.float() if value.dtype == torch.bfloat16 else value).detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        sha.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _feed(sha, [(key, value[key]) for key in value])
    elif is_dataclass(value) and not isinstance(value, type):
        _feed(sha, [(field.name, getattr(value, field.name)) for field in fields(value)])
    elif isinstance(value, list | tuple | np.ndarray):
        sha.update(f"{len(value)}[".encode())
        for entry in value:
            _feed(sha, entry)
    else:
        sha.update(f"{type(value).__name__}{value!r};".encode(errors="surrogatepass"))


def _peak() -> int:
    """The most virtual memory that this process had, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmPeak:")[2].split()[0]) * 1024

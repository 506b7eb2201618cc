"""Files and folders that are there whole or not at all."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError
from .full_disk import is_full_disk
from .json_values import JsonObject
from .temporary_files import temporary, tidy

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextmanager
def new_folder(path: str | Path, *, replace: str | None = None) -> Iterator[Path]:
    """Fill a folder under a temporary name beside ``path`` and rename it when the block ends well.

    Args:
        path: The folder to make. Its parents are made too.
        replace: A folder that exists may be replaced (after the new one is complete) if it holds a file of this
            name, by which folders of its kind are known; ``None`` replaces nothing but an empty folder.

    Yields:
        The temporary folder. It is removed when the block raises, Ctrl-C included; what a killed process left is put
        right by the next one, see `tidy`. Files that get their place have the permissions of the umask, whoever wrote
        them.

    Raises:
        InputError: ``path`` exists, and may not be replaced; or a file stands where its folder would.
    """
    path = Path(path)
    check_free(path, replace=replace)
    make_folder(path.parent)
    with temporary(path, ".tmp", folder=True) as made, _naming(path):
        made.chmod(0o777 & ~_umask())
        yield made
        for file in made.rglob("*"):
            if file.is_file():
                _allow_by_umask(file)
        _replace_folder(made, path)


def check_free(path: Path, *, replace: str | None = None) -> None:
    """Put right what killed runs left, and raise an `InputError` unless a folder may be made; see `new_folder`."""
    check_below(path)
    tidy(path)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if replace is None:
        raise InputError(f"{path}: exists already; choose another `out` or pass `overwrite` to replace it")
    if not (path / replace).is_file():
        raise InputError(f"{path}: holds no {replace}, so it is not replaced; choose another `out`")


def check_below(path: Path) -> None:
    """Raise an `InputError` if a file stands where a folder that ``path`` is in would."""
    _check_folder(path, path.parent)


def _check_folder(path: Path, folder: Path) -> None:
    there = next((place for place in (folder, *folder.parents) if os.path.lexists(place)), None)
    if there is not None and not there.is_dir():
        raise InputError(f"{path}: {there} is no folder, so that nothing can be made in it; choose another `out`")


def check_outside(out: Path, data: str | Path) -> None:
    """Raise an `InputError` if a folder that is to be made is, or lies inside, that of the images or features."""
    source = Path(data).expanduser().resolve()
    if source.is_dir() and out.resolve().is_relative_to(source):
        raise InputError(f"--out {out}: is inside the images or features ({data}); choose another")


def make_folder(path: Path) -> None:
    """Make a folder that may exist, with its parents.

    Raises:
        InputError: A file stands in its place, or where one of its parents would.
    """
    _check_folder(path, path)
    path.mkdir(parents=True, exist_ok=True)


@contextmanager
def only_writer(out: Path, work: str) -> Iterator[None]:
    """Keep a second process, or thread, from writing to the same output.

    Args:
        out: The output; its lock is a hidden file beside it.
        work: What would be done twice, such as ``extraction``.

    Raises:
        InputError: Somebody else is writing it, or a file stands where its folder would.
    """
    from filelock import FileLock, Timeout

    check_below(out)
    make_folder(out.parent)
    lock = FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        if not Path(lock.lock_file).exists():  # where no file can be made, such as in /proc
            raise InputError(f"{out}: {out.parent} takes no files; choose another `out`") from None
        raise InputError(f"{out}: another {work} is writing it; wait for that, or choose another `out`") from None
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _replace_folder(made: Path, path: Path) -> None:
    """Rename ``made`` to ``path``; what stood there is removed last."""
    if not path.exists():
        made.rename(path)
        return
    with temporary(path, ".old", folder=True) as old:
        try:
            path.rename(old / path.name)
            made.rename(path)
        finally:
            if not path.exists() and (old / path.name).exists():
                (old / path.name).rename(path)


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """Write a file under a temporary name beside ``path``; flushed to disk and renamed when the block ends well.

    Yields:
        The temporary path, removed when the block raises.

    Raises:
        InputError: A file stands where its folder would.
    """
    path = Path(path)
    check_below(path)
    tidy(path)
    with temporary(path, ".tmp", folder=False) as made, _naming(path):
        yield made
        with made.open("rb") as written:
            os.fsync(written.fileno())
        _allow_by_umask(made)
        made.replace(path)


def check_replaceable(path: str | Path, mark: str, what: str) -> None:
    """Refuse to write a file over anything but an older one of its kind, or an empty one.

    Args:
        path: The file to write.
        mark: What stands in the first kilobyte of each file of that kind.
        what: That kind, in words.

    Raises:
        InputError: Something else is there.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    with regular_file(path).open("rb") as file:
        found = file.read(1024)
    if found and mark.encode() not in found:
        raise InputError(f"{path}: exists and is not {what}, and nothing else is replaced; choose another `out`")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let a full disk, which the system tells without a file's name, have this one."""
    try:
        yield
    except OSError as error:
        if is_full_disk(error):
            error.filename = error.filename or str(path)
        raise


def _allow_by_umask(file: Path) -> None:
    """Give a file the permissions of any new one: some libraries write theirs for the owner alone."""
    file.chmod(0o666 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def regular_file(path: str | Path) -> Path:
    """The path of a file that can be read to its end, whatever wrote it.

    Raises:
        InputError: Nothing is there, or a folder, or what has no end or waits for a writer (a device, a named pipe, a
            socket).
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise InputError(f"{path}: is a symbolic link to {path.readlink()}, which is not found") from None
        raise InputError(f"{path}: not found") from None
    except (OSError, ValueError) as error:  # no permission, too long a name, a zero byte in it
        raise InputError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "no file")
        raise InputError(f"{path}: is {kind}, expected a regular file")
    return path


def sha256_file(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON (sorted keys, no blanks), in hexadecimal."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON, atomically."""
    with new_file(path) as made:
        made.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path) -> JsonObject:
    """Read a JSON object.

    Raises:
        InputError: The file is missing, is not JSON, or does not hold an object.
    """
    try:
        value = parse_json(regular_file(path).read_text(encoding="utf-8"))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a JSON {type(value).__name__}, expected an object")
    return value


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: No JSON, values too deep in each other, a number of thousands of digits, or an object with a field
            twice, of which each reader would take another.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        if "int_max_str_digits" in str(error):  # Python's advice, for which no user has a place
            raise ValueError("a number of thousands of digits") from None
        raise
    except RecursionError:
        raise ValueError("values are nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice[:40]!r} is repeated in one object")
    return found

"""``.tar`` files of images and their labels, as `datasets` reads them (WebDataset)."""

import json
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ....core.errors import InputError
from ....core.files import regular_file
from ....core.printable import printable, shown
from .folder_source import IMAGE_SUFFIXES

# What `datasets` decodes by itself; other kinds are arrays and pickles.
_NUMBERS, _JSON, _TEXT = (".cls", ".cls2", ".id", ".index", ".inx"), (".json", ".jsn"), (".text", ".txt")
_LABELS = frozenset((*_NUMBERS, *_JSON, *_TEXT))
_SAMPLE = re.compile(r"(?P<key>(?:.*/|)[^.]+)[.](?P<ending>[^/]*)")  # as `datasets` divides a name

_STEP, _EXCERPT = 1 << 20, 40


def check_tar(path: Path) -> dict[str, str]:
    """Refuse what holds anything but images and text, more bytes than the file has, or no end after its last member.

    Returns:
        By the endings of the images of a sample, such as ``.jpg .png``, the first sample that has these.

    Raises:
        InputError: Such a file, or a damaged one.
    """
    try:
        with tarfile.open(regular_file(path), "r:") as archive:
            members = [member for member in archive if member.isfile() or member.issparse()]
            end = archive.offset
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: truncated, damaged or not .tar ({error}); get it again") from None
    for member in members:
        if Path(member.name).suffix.lower() not in IMAGE_SUFFIXES | _LABELS:
            raise InputError(
                f"{path}: holds {member.name[-80:]!r}, expected images and labels ({' '.join(sorted(_LABELS))}); "
                "remove it"
            )
    if not _ends(path, end):
        raise InputError(
            f"{path}: no end after {len(members)} files, expected zeros from byte {end:,} on: truncated, "
            "damaged or several archives in one; get it again, or write it again"
        )
    size = sum(member.size for member in members)
    if size > path.stat().st_size or any(member.issparse() for member in members):
        raise InputError(f"{path}: states {size:,} bytes, more than it has; write it again, not as a sparse file")
    _check_labels(path, members)
    return _endings(member.name for member in members)


def _check_labels(path: Path, members: Iterable[tarfile.TarInfo]) -> None:
    """Read what `datasets` would read of labels, to name the one that it stumbles over."""
    with path.open("rb") as file:
        for member in members:
            suffix = Path(member.name).suffix.lower()
            if suffix not in _LABELS:
                continue
            file.seek(member.offset_data)
            content = file.read(member.size)
            kind, read = _reader(suffix)
            try:
                read(content)
            except (ValueError, RecursionError):
                found = shown(content[:_EXCERPT].decode(errors="replace"))
                raise InputError(
                    f"{path}: {printable(member.name[-80:])}: {found} found, expected {kind}; correct it or take its "
                    "sample out"
                ) from None


def _reader(suffix: str) -> tuple[str, Callable[[bytes], object]]:
    """What a kind of label is, in words, and how `datasets` reads it."""
    if suffix in _NUMBERS:
        return "a whole number", int
    return ("JSON", json.loads) if suffix in _JSON else ("text in UTF-8", bytes.decode)


def check_same_images(found: Mapping[Path, Mapping[str, str]]) -> None:
    """Refuse samples whose images have other endings than those of the first: these would be columns with gaps.

    Args:
        found: What `check_tar` gave, by file.

    Raises:
        InputError: There are such samples.
    """
    kinds = [(endings, path, sample) for path, samples in found.items() for endings, sample in samples.items()]
    for endings, path, sample in kinds[1:]:
        expected, first, other = kinds[0]
        if endings != expected:
            where = "" if path == first else f" in {first.name}"
            raise InputError(
                f"{path}: sample {sample!r} has {endings or 'no image'}, but {other!r}{where} has "
                f"{expected or 'no image'}, expected images of the same endings in every sample; write it again"
            )


def _endings(names: Iterable[str]) -> dict[str, str]:
    samples: dict[str, set[str]] = {}
    for name in names:
        if divided := _SAMPLE.fullmatch(name):
            ends = samples.setdefault(divided["key"], set())
            ends.update({f".{divided['ending']}"} if Path(name).suffix.lower() in IMAGE_SUFFIXES else ())
    found: dict[str, str] = {}
    for key, ends in samples.items():
        found.setdefault(" ".join(sorted(ends)), key)
    return found


def _ends(path: Path, place: int) -> bool:
    """Whether two blocks of zeros or more follow, and nothing else (POSIX.1-2017, pax, ustar interchange format)."""
    found = 0
    with path.open("rb") as file:
        file.seek(place)
        while block := file.read(_STEP):
            if block.count(0) < len(block):
                return False
            found += len(block)
    return found >= 2 * tarfile.BLOCKSIZE

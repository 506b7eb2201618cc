"""``.tar`` files of images and their labels, as `datasets` reads them (WebDataset)."""

import tarfile
from pathlib import Path

from ....core.errors import InputError
from ....core.files import regular_file
from .folder_source import IMAGE_SUFFIXES

# Of text; other kinds are arrays and pickles, which `datasets` would decode.
_LABELS = frozenset(".cls .cls2 .id .index .inx .json .jsn .text .txt".split())  # noqa: SIM905

_STEP = 1 << 20


def check_tar(path: Path) -> None:
    """Refuse what holds anything but images and text, more bytes than the file has, or no end after its last member.

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
            f"{path}: no end after {len(members)} files, expected zeros from byte {end:,} on; it was cut, damaged or "
            "put together of several: get it again, or write it again"
        )
    size = sum(member.size for member in members)
    if size > path.stat().st_size or any(member.issparse() for member in members):
        raise InputError(f"{path}: says to hold {size:,} bytes, more than it has; write it again without holes")


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
